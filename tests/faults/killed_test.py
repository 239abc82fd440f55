#!/usr/bin/python3
# killed_test.py BIN PROTO: kill -9 of the daemon, and its restart.
import os
import threading

import grpc
from rig.case import FaultTest, main
from rig.wait import eventually

OK, UNAVAILABLE = grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE
ROUNDS = 5


class KilledTest(FaultTest):
    def start(self):
        self.start_backends(2)
        self.options = {"top": f'state_file: "{self.folder}/state.yaml"'}
        self.start_daemon(**self.options)

    # At the same address, as a supervisor would.
    def restart(self):
        self.write_config(**self.options)
        self.daemon.start()
        self.connect_admin()

    def test_clients_that_wait_go_on_after_a_restart(self):
        self.start()
        load = self.load(wait=True)
        for _ in range(ROUNDS):
            self.progress(load)
            before = load.done()
            self.daemon.kill()
            # The port and the admin socket, whose file is still there, are bound at once although connections were cut.
            self.restart()
            self.progress(load)
            lost = [o for o in load.outcomes[before:] if o.code != OK]
            self.assertLessEqual({o.code for o in lost}, {UNAVAILABLE}, lost)
            self.assertLessEqual(len(lost), 8, lost)  # at most those that each of four callers had under way
        load.stop()

    def test_the_state_file_is_whole_whenever_the_daemon_dies(self):
        self.start()
        for turn in range(ROUNDS):
            acknowledged, asked = self.names(), set()
            stopped = threading.Event()

            def change():
                number = 0
                while not stopped.is_set():
                    name = f"r{turn}-{number}"
                    asked.add(name)
                    try:
                        self.ask("ChangeEndpoints", cluster="echo", kind=self.admin_messages.ChangeEndpointsRequest.KIND_ADD,
                                 endpoints=[{"name": name, "address": "127.0.0.1:9", "weight": 0.01}])
                    except grpc.RpcError:
                        return
                    acknowledged.add(name)
                    number += 1
            thread = threading.Thread(target=change)
            thread.start()
            target = 3 + 5 * turn
            eventually(lambda: len(acknowledged) > target, "changes are made")
            self.daemon.kill()
            stopped.set()
            thread.join()
            self.restart()
            # All that was said to be done is there, and at most the one that was under way besides.
            names = self.names()
            self.assertEqual(acknowledged - names, set())
            self.assertLessEqual(len(names - acknowledged), 1, names - acknowledged)
            self.assertLessEqual(names - acknowledged, asked)

    def test_a_file_left_half_written_beside_the_state_does_not_matter(self):
        self.start()
        self.assertEqual(self.sluicectl("add", "echo", "third=127.0.0.1:9").returncode, 0)
        self.daemon.kill()
        with open(f"{self.folder}/state.yaml.new", "w", encoding="utf-8") as file:
            file.write("clusters:\n  echo:\n    endpo")
        self.restart()
        self.assertIn("third", self.names())
        self.assertEqual(self.sluicectl("remove", "echo", "third").returncode, 0)
        self.assertFalse(os.path.exists(f"{self.folder}/state.yaml.new"))


if __name__ == "__main__":
    main()
