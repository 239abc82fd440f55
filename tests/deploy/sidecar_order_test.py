#!/usr/bin/python3
# sidecar_order_test.py SOURCE BUILD: a pod that ends, played with processes in the order of the kubelet (KEP-753). The hooks and the
# configuration are those of deploy/kubernetes/sidecar.yaml; the application goes on calling after its SIGTERM, on its old connection and on
# new ones. None of its last 1,000 calls may be refused. Loopback only.
import os
import signal
import subprocess
import sys
import tempfile
import threading
import unittest

import grpc
import yaml

SOURCE, BUILD = (os.path.abspath(word) for word in sys.argv[1:3])
LAST_CALLS, LONG_WAIT = 1000, 60
PATH = "/sluice.echo.v1.Echo/Unary"  # any request is answered: an empty message is one


class Child:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.output = ""

    def wait_for(self, words):
        for line in self.process.stdout:
            self.output += line
            if words in line:
                return line
        raise AssertionError(self.output)

    def signal(self):
        self.process.send_signal(signal.SIGTERM)

    def end(self):
        self.output += self.process.communicate(timeout=LONG_WAIT)[0]
        return self.process.returncode


class Application:
    """Calls through the sidecar: some before it is told to end, then its last calls, of which every tenth is on a new connection."""

    def __init__(self, address):
        self.address = address
        self.refused = []
        self.told = threading.Event()
        self.channel = self.open()
        self.call(self.channel)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def open(self):
        return grpc.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])

    def call(self, channel):
        try:
            channel.unary_unary(PATH)(b"", timeout=LONG_WAIT)
        except grpc.RpcError as error:
            self.refused.append(f"{error.code().name}: {error.details()}")

    def run(self):
        while not self.told.is_set():
            self.call(self.channel)
        for number in range(LAST_CALLS):
            if number % 10 != 0:
                self.call(self.channel)
                continue
            with self.open() as channel:
                self.call(channel)

    def join(self):
        self.thread.join(LONG_WAIT)
        assert not self.thread.is_alive()
        self.channel.close()


class SidecarOrderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with open(SOURCE + "/deploy/kubernetes/sidecar.yaml", encoding="utf-8") as text:
            kinds = {item["kind"]: item for item in yaml.safe_load_all(text)}
        cls.config = yaml.safe_load(kinds["ConfigMap"]["data"]["sluice.yaml"])
        cls.sidecar = kinds["Deployment"]["spec"]["template"]["spec"]["initContainers"][0]

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice.")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.backend = self.start("/bin/sluice-echo", "server", "--listen", f"unix:{self.folder}/echo.sock", "--name", "users")
        self.backend.wait_for("listening")

    def start(self, program, *words):
        child = Child(BUILD + program, *words)
        self.addCleanup(child.process.stdout.close)
        self.addCleanup(child.process.wait)
        self.addCleanup(child.process.kill)
        return child

    def start_sidecar(self, **changes):
        config = dict(self.config, **changes)
        self.address = f"unix:{self.folder}/listen.sock"
        self.admin = f"unix:{self.folder}/admin.sock"
        config["listeners"] = [{"address": self.address}]
        config["clusters"] = [{"name": "users", "endpoints": [f"unix:{self.folder}/echo.sock"]}]
        config["admin"] = {"grpc": self.admin}
        with open(self.folder + "/sluice.yaml", "w", encoding="utf-8") as file:
            yaml.safe_dump(config, file)
        sidecar = self.start("/bin/sluiced", "-c", self.folder + "/sluice.yaml")
        sidecar.wait_for("is ready")
        return sidecar

    def run_hook(self):
        command = self.sidecar.get("lifecycle", {}).get("preStop", {}).get("exec", {}).get("command")
        if command is not None:
            program = BUILD + "/bin/" + os.path.basename(command[0])
            subprocess.run([program, "--address", self.admin, *command[1:]], check=True, timeout=LONG_WAIT)

    def test_a_native_sidecar_refuses_none_of_the_last_calls(self):
        sidecar = self.start_sidecar()
        application = Application(self.address)
        # The pod begins to end: hooks of all containers, SIGTERM for the application; the sidecar's SIGTERM when it has ended.
        self.run_hook()
        application.told.set()
        application.join()
        sidecar.signal()
        self.assertEqual(sidecar.end(), 0, sidecar.output)
        self.assertEqual(len(application.refused), 0, application.refused[:3])

    def test_a_plain_container_with_a_delay_refuses_none_of_the_last_calls(self):
        # All get SIGTERM at once. The delay is the time that the application takes to end, here for as long as the test may wait.
        sidecar = self.start_sidecar(drain={"delay": "100s"}, drain_timeout="120s")
        application = Application(self.address)
        sidecar.signal()
        sidecar.wait_for("draining")
        application.told.set()
        application.join()
        self.assertEqual(len(application.refused), 0, application.refused[:3])
        sidecar.signal()  # the grace period is over
        self.assertEqual(sidecar.end(), 0, sidecar.output)

    def test_a_drain_at_the_beginning_is_what_refuses_them(self):
        # What a preStop hook would do: the test above can fail.
        self.start_sidecar()
        application = Application(self.address)
        subprocess.run([BUILD + "/bin/sluicectl", "--address", self.admin, "drain"], check=True, timeout=LONG_WAIT)
        application.told.set()
        application.join()
        self.assertGreater(len(application.refused), LAST_CALLS // 2)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
