#!/usr/bin/python3
# descriptors_test.py BIN PROTO: a daemon with more clients than file descriptors (EMFILE).
import resource
import socket
import threading

import grpc
from rig.calls import Client
from rig.case import FaultTest, main
from rig.wait import eventually

OK = grpc.StatusCode.OK
LIMIT = 128
MORE = 100  # clients beyond the limit


class DescriptorsTest(FaultTest):
    def limited(self):
        resource.setrlimit(resource.RLIMIT_NOFILE, (LIMIT, LIMIT))

    # Connections that say nothing, more than the daemon has descriptors for.
    def crowd(self):
        host, port = self.listen.rsplit(":", 1)
        clients = []
        for _ in range(LIMIT + MORE):
            client = socket.socket()
            client.setblocking(False)
            client.connect_ex((host, int(port)))
            clients.append(client)
        self.addCleanup(lambda: [c.close() for c in clients])
        # Nothing is accepted any more: the number stands still while clients wait.
        seen = [0] * 20

        def still():
            seen.append(self.metric("sluice_downstream_connections"))
            return seen[-20] == seen[-1] and seen[-1] > LIMIT / 2
        eventually(still, "all descriptors that clients may have are taken")
        return clients

    def start(self):
        self.start_backends(2)
        self.start_daemon(listener="headers_timeout: 0", before=self.limited)

    # Processor seconds and wakes of the daemon in two seconds without a call.
    def idle(self):
        cpu, sleeps = self.daemon.cpu(), self.daemon.sleeps()
        threading.Event().wait(2)  # the span that is measured
        return self.daemon.cpu() - cpu, self.daemon.sleeps() - sleeps

    def test_it_neither_spins_nor_wedges(self):
        self.start()
        client = self.client()
        self.assertEqual(client.call().code, OK)
        own_cpu, own_sleeps = self.idle()  # its health judge and gRPC have a pace of their own
        load = self.load()
        self.progress(load)
        crowd = self.crowd()
        # Connections that are up go on.
        self.progress(load, 200)
        outcomes = load.stop()
        self.assertEqual([o for o in outcomes if o.code != OK], [])
        # The crowd waits, the daemon sleeps: it looks for room ten times a second (AcceptLoop::kPause), for which a
        # worker wakes twice and the monitor looks three times after each.
        cpu, sleeps = self.idle()
        print(f"idle: {own_cpu:.2f} s of CPU and {own_sleeps} wakes in 2 s; with a crowd at the door: {cpu:.2f}, {sleeps}")
        self.assertLess(cpu - own_cpu, 0.2)
        self.assertLess(sleeps - own_sleeps, 300)
        # It says so, and not without end.
        lines = self.daemon.count("descriptors")
        self.assertGreaterEqual(lines, 1, self.daemon.text())
        self.assertLessEqual(lines, 5, self.daemon.text())
        # Waiting connections get in when there is room.
        for idle in crowd:
            idle.close()
        fresh = self.client()
        self.assertEqual(fresh.call(wait=True).code, OK)
        eventually(lambda: self.daemon.descriptors() < LIMIT / 2, "the crowd's descriptors are back")

    def test_clients_cannot_take_what_the_daemon_needs_for_backends(self):
        self.start()
        client = self.client()
        self.metric("sluice_downstream_connections")
        early = [self.client() for _ in range(4)]
        for each in early:  # up before the crowd comes; no call has been made, so no backend is connected
            grpc.channel_ready_future(each.channel).result(timeout=30)
        self.crowd()
        for i, each in enumerate(early):
            outcome = each.call(f"key-{i}")
            self.assertEqual(outcome.code, OK, outcome)
        del client

    def test_the_admin_door_stays_open(self):
        self.start()
        crowd = self.crowd()
        done = self.sluicectl("status")
        self.assertEqual(done.returncode, 0, done.stderr)
        for idle in crowd:
            idle.close()
        eventually(lambda: self.sluicectl("status").returncode == 0, "sluicectl is answered")

    # Not even those that are kept: an accept fails at each door.
    def test_after_a_time_without_any_descriptor_all_doors_open_again(self):
        self.start_backends(1)
        self.start_daemon(listener="headers_timeout: 0")
        client = self.client()
        self.assertEqual(client.call().code, OK)
        self.daemon.limit(resource.RLIMIT_NOFILE, 3)
        self.assertEqual(self.sluicectl("--timeout", "1s", "status").returncode, 3)
        waits = self.client()
        late = waits.begin(wait=True)
        self.daemon.said("listener .*: accepting is paused")
        self.daemon.said("admin RPC .*: accepting is paused")
        self.assertEqual(client.call().code, OK)  # what is up goes on
        self.daemon.limit(resource.RLIMIT_NOFILE, 1000)
        self.assertEqual(waits.finish(*late).code, OK)
        self.assertEqual(self.sluicectl("status").returncode, 0)

    def test_a_backend_that_comes_back_while_there_is_no_descriptor_is_connected_to(self):
        self.start()
        client = self.client()
        self.assertEqual(client.call().code, OK)
        self.crowd()
        for backend in self.backends:
            backend.kill()
        eventually(lambda: all(self.endpoint(b.name).connections == 0 for b in self.backends), "the proxy sees it")
        for backend in self.backends:
            backend.start()
        eventually(lambda: client.call().code == OK, "calls succeed again")


if __name__ == "__main__":
    main()
