# FaultTest: a test with a folder, backends and a daemon; whatever it started is ended with it.
import itertools
import os
import re
import subprocess
import sys
import tempfile
import unittest

import grpc

from rig.calls import Client, Load
from rig.process import Backend, Daemon
from rig.wait import LONG_WAIT, eventually

_hosts = itertools.count(1)


# Called by each program: PROGRAM BIN PROTO [TEST...].
def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]], verbosity=2)


class FaultTest(unittest.TestCase):
    def setUp(self):
        self.bin, proto = sys.argv[1:3]
        folder = tempfile.TemporaryDirectory(prefix="sluice.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        generated = f"{self.folder}/proto"
        os.mkdir(generated)
        subprocess.run(["protoc", "-I", proto, "--python_out", generated, "sluice/echo/v1/echo.proto",
                        "sluice/admin/v1/admin.proto"], check=True)
        if "sluice" not in sys.modules:  # the first test's stay
            sys.path.insert(0, generated)
        from sluice.admin.v1 import admin_pb2
        from sluice.echo.v1 import echo_pb2
        self.echo, self.admin_messages = echo_pb2, admin_pb2
        self.backends, self.daemon = [], None
        self.addCleanup(self._end_processes)
        self.admin = None

    def _end_processes(self):
        if self.admin is not None:
            self.admin.close()
        for process in [self.daemon, *self.backends]:
            if process is not None and process.running():
                process.kill()

    # An address of 127/8 for one process of this test.
    def host(self):
        number = next(_hosts)
        return f"127.{10 + os.getpid() % 200}.{os.getpid() // 200 % 250}.{number}"

    def start_backends(self, count):
        for _ in range(count):
            name = f"echo-{len(self.backends) + 1}"
            backend = Backend(self.bin, name, self.host(), f"{self.folder}/{name}.out")
            backend.start()
            self.backends.append(backend)

    # `cluster`, `listener`, `top`: keys of the configuration. `endpoints`: beside the backends, as {name: address}.
    def start_daemon(self, cluster="", listener="", top="", endpoints=None, listen=None, **options):
        self.listen = listen or f"{self.host()}:0"
        self.write_config(cluster, listener, top, endpoints)
        self.daemon = Daemon(self.bin, f"{self.folder}/sluice.yaml", f"{self.folder}/daemon.out", **options)
        self.daemon.start()
        self.listen = self.daemon.address()
        self.connect_admin()

    def write_config(self, cluster="", listener="", top="", endpoints=None):
        every = {**{b.name: b.address for b in self.backends}, **(endpoints or {})}
        lines = "".join(f'      - {{name: {name}, address: "{address}"}}\n' for name, address in every.items())
        with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'workers: 2\nlisteners:\n  - {{address: "{self.listen}"{listener and ", " + listener}}}\n'
                f'admin: {{grpc: "unix:{self.folder}/admin.sock"}}\n'
                f"clusters:\n  - name: echo\n    {cluster or 'backoff_max: 200ms'}\n"
                f"    endpoints:\n{lines}routes:\n  - cluster: echo\n    hash_by: {{metadata: x-key}}\n{top}\n")

    # A connection to the admin RPC that stays up.
    def connect_admin(self):
        if self.admin is not None:
            self.admin.close()
        self.admin = grpc.insecure_channel(f"unix:{self.folder}/admin.sock", options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.max_reconnect_backoff_ms", 200)])
        self.ask("GetServer", wait=True)

    def ask(self, method, wait=False, **fields):
        request = getattr(self.admin_messages, f"{method}Request")(**fields)
        answer = getattr(self.admin_messages, f"{method}Response")
        return self.admin.unary_unary(
            f"/sluice.admin.v1.Admin/{method}", request_serializer=lambda m: m.SerializeToString(),
            response_deserializer=answer.FromString)(request, timeout=LONG_WAIT, wait_for_ready=wait)

    def endpoint(self, name):
        clusters = self.ask("ListClusters").clusters
        return next(e for e in clusters[0].endpoints if e.name == name and e.state != e.STATE_REMOVED)

    def names(self):
        return {e.name for e in self.ask("ListClusters").clusters[0].endpoints if e.state != e.STATE_REMOVED}

    # The sum of a metric's series whose labels contain `labels`.
    def metric(self, name, labels=""):
        text = self.ask("GetMetrics").text
        return sum(float(value) for found, value in re.findall(rf"^{name}(\{{.*\}})? (\S+)$", text, re.M) if labels in found)

    def sluicectl(self, *arguments):
        return subprocess.run([f"{self.bin}/sluicectl", "--address", f"unix:{self.folder}/admin.sock", *arguments],
                              capture_output=True, text=True, timeout=LONG_WAIT, check=False)

    def client(self):
        client = Client(self, self.listen)
        self.addCleanup(client.close)
        return client

    def load(self, **options):
        load = Load(self, self.listen, **options)
        self.addCleanup(load.stop)
        return load

    # `count` more calls of the load have ended.
    def progress(self, load, count=100):
        target = load.done() + count
        eventually(lambda: load.done() >= target, f"{count} more calls of the load, of {load.outcomes[-3:]}")

    # A key that this backend gets, found by calling.
    def key_of(self, client, name):
        for i in range(1000):
            if client.call(f"key-{i}").backend == name:
                return f"key-{i}"
        raise AssertionError(f"no key of {name}")
