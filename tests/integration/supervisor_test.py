#!/usr/bin/python3
# supervisor_test.py BIN: the daemon under a service manager that this program plays as systemd documents it: sd_notify(3) with
# descriptors to keep, sd_listen_fds(3). After a kill -9 no client is refused.
import array
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from concurrent import futures

import grpc

BIN = os.path.abspath(sys.argv[1])
LONG_WAIT = 30


class Backend(grpc.GenericRpcHandler):
    def service(self, details):
        return grpc.unary_unary_rpc_method_handler(lambda request, context: request)


class Manager:
    """Hears what the daemon says and keeps what it gives."""

    def __init__(self, folder):
        self.path = folder + "/notify"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.socket.settimeout(LONG_WAIT)
        self.store = {}

    def hear(self):
        """The fields of one message."""
        text, control, _, _ = self.socket.recvmsg(4096, 4096)
        fields = dict(line.split("=", 1) for line in text.decode().splitlines())
        passed = array.array("i")
        for _, _, data in control:
            passed.frombytes(data)
        if fields.get("FDSTORE") == "1":
            self.store[fields["FDNAME"]] = list(passed)
        elif fields.get("FDSTOREREMOVE") == "1":
            for number in self.store.pop(fields["FDNAME"], []):
                os.close(number)
        return fields

    def hear_until(self, key):
        fields = {}
        while key not in fields:
            fields = self.hear()
        return fields

    def start(self, config, sockets=(), names=()):
        """`sockets`: descriptors to pass; the store's go along as systemd does it. LISTEN_PID is the child's own."""
        kept = [(name, number) for name, numbers in self.store.items() for number in numbers]
        passed = [*sockets, *(number for _, number in kept)]
        all_names = [*names, *(name for name, _ in kept)]
        script = 'export LISTEN_PID=$$; exec "$@"'
        environment = dict(os.environ, NOTIFY_SOCKET=self.path)
        if passed:
            environment.update(LISTEN_FDS=str(len(passed)), LISTEN_FDNAMES=":".join(all_names))

        def arrange():  # in the child: above first, so that none is overwritten
            high = [os.dup2(number, 500 + i) for i, number in enumerate(passed)]
            for i, number in enumerate(high):
                os.dup2(number, 3 + i)
        return subprocess.Popen(["bash", "-c", script, "sluiced", f"{BIN}/sluiced", "-c", config], env=environment,
                                preexec_fn=arrange, close_fds=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


class SupervisorTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(prefix="sluice-supervisor-")
        self.addCleanup(self.folder.cleanup)
        self.server = grpc.server(futures.ThreadPoolExecutor(4), handlers=(Backend(),))
        self.backend = self.server.add_insecure_port("127.0.0.1:0")
        self.server.start()
        self.addCleanup(self.server.stop, None)
        self.manager = Manager(self.folder.name)
        self.addCleanup(self.manager.socket.close)

    def config(self, address, name=""):
        path = self.folder.name + "/sluice.yaml"
        with open(path, "w", encoding="utf-8") as file:
            file.write(f"""
listeners: [{{address: "{address}"{', name: ' + name if name else ''}}}]
clusters: [{{name: service, endpoints: ["127.0.0.1:{self.backend}"]}}]
routes: [{{cluster: service}}]
admin: {{grpc: "unix:{self.folder.name}/admin.sock"}}
""")
        return path

    def start(self, *words, **more):
        daemon = self.manager.start(*words, **more)
        self.addCleanup(daemon.stdout.close)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.kill)
        return daemon

    def free_port(self):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    def call(self, port):
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            return channel.unary_unary("/shop.Items/Get")(b"item", timeout=LONG_WAIT, wait_for_ready=False)

    def test_it_says_where_it_stands_and_leaves_no_trace_in_its_environment(self):
        port = self.free_port()
        daemon = self.start(self.config(f"127.0.0.1:{port}"))
        self.assertIn("STATUS", self.manager.hear_until("READY"))
        self.assertEqual(self.call(port), b"item")
        daemon.send_signal(signal.SIGHUP)
        self.assertGreater(int(self.manager.hear_until("RELOADING")["MONOTONIC_USEC"]), 0)
        self.manager.hear_until("READY")
        self.assertEqual(len(self.manager.store), 1)
        daemon.terminate()
        self.manager.hear_until("STOPPING")
        self.manager.hear_until("FDSTOREREMOVE")
        self.assertEqual(daemon.wait(LONG_WAIT), 0)
        self.assertEqual(self.manager.store, {}, "after an end in good order clients are refused, and go elsewhere")

    def test_after_a_kill_no_client_is_refused(self):
        port = self.free_port()
        config = self.config(f"127.0.0.1:{port}")
        daemon = self.start(config)
        self.manager.hear_until("READY")
        for _ in range(3):
            daemon.kill()
            self.assertEqual(daemon.wait(LONG_WAIT), -signal.SIGKILL)
            clients = [socket.create_connection(("127.0.0.1", port), LONG_WAIT) for _ in range(20)]  # refused: an error
            answers = []
            caller = threading.Thread(target=lambda: answers.append(self.call(port)))
            caller.start()
            daemon = self.start(config)
            self.manager.hear_until("READY")
            caller.join(LONG_WAIT)
            self.assertEqual(answers, [b"item"], "a call that was begun while no daemon was there")
            for client in clients:
                client.settimeout(LONG_WAIT)
                client.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes.fromhex("000000040000000000"))
                self.assertEqual(client.recv(9)[3], 4, "SETTINGS of the new daemon")
                client.close()
        daemon.terminate()
        self.assertEqual(daemon.wait(LONG_WAIT), 0)

    def test_a_socket_is_taken_by_address_or_name_and_stays_open_at_the_end(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            for names in (["sluiced.socket"], ["grpc"]):
                client = socket.create_connection(("127.0.0.1", port), LONG_WAIT)  # before the daemon is there
                if names == ["sluiced.socket"]:
                    config = self.config(f"127.0.0.1:{port}")
                else:
                    config = self.config("127.0.0.1:1", "grpc")
                daemon = self.start(config, sockets=[listening.fileno()], names=names)
                self.manager.hear_until("READY")
                self.assertEqual(self.call(port), b"item")
                self.assertEqual(self.manager.store, {}, "the manager has its own socket already")
                client.close()
                daemon.terminate()
                self.assertEqual(daemon.wait(LONG_WAIT), 0)
                socket.create_connection(("127.0.0.1", port), LONG_WAIT).close()

    def test_a_socket_that_no_listener_has_is_named(self):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            daemon = self.start(self.config("127.0.0.1:0"), sockets=[listening.fileno()], names=["old"])
            text, _ = daemon.communicate(timeout=LONG_WAIT)
            self.assertEqual(daemon.returncode, 1)
            self.assertIn(f"no listener has by its address or name: old (127.0.0.1:{listening.getsockname()[1]})", text)

    def test_a_manager_that_is_gone_is_harmless(self):
        port = self.free_port()
        os.unlink(self.manager.path)
        daemon = self.start(self.config(f"127.0.0.1:{port}"))
        for line in daemon.stdout:
            if re.search(r"is ready", line):
                break
        self.assertEqual(self.call(port), b"item")
        daemon.terminate()
        self.assertEqual(daemon.wait(LONG_WAIT), 0)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
