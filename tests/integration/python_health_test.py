#!/usr/bin/python3
# python_health_test.py BIN: endpoints that are Python gRPC servers with a health service as grpcio-health-checking has it
# (Watch on a thread of its own, SERVICE_UNKNOWN for what is not set) are asked by the daemon, and calls follow the answers.
import json
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from concurrent import futures

import grpc

BIN = sys.argv[1]
LONG_WAIT = 30
SERVING, NOT_SERVING, SERVICE_UNKNOWN = 1, 2, 3


class Health(grpc.GenericRpcHandler):
    """grpc.health.v1.Health of one service; messages by hand: a request is field 1, a string, a response field 1, an enum."""

    def __init__(self):
        self.changed = threading.Condition()
        self.statuses = {}
        self.watches = 0

    def set(self, service, status):
        with self.changed:
            self.statuses[service] = status
            self.changed.notify_all()

    def service(self, details):
        if details.method == "/grpc.health.v1.Health/Check":
            return grpc.unary_unary_rpc_method_handler(self.check)
        if details.method == "/grpc.health.v1.Health/Watch":
            return grpc.unary_stream_rpc_method_handler(self.watch)
        return None

    @staticmethod
    def service_of(request):
        return request[2:].decode() if request else ""

    def check(self, request, context):
        with self.changed:
            status = self.statuses.get(self.service_of(request))
        if status is None:
            context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
        return bytes([8, status])

    def watch(self, request, context):
        last = None
        with self.changed:
            self.watches += 1
        context.add_callback(self.wake)
        while context.is_active():
            with self.changed:
                status = self.statuses.get(self.service_of(request), SERVICE_UNKNOWN)
                if status == last:
                    self.changed.wait(1)
                    continue
            last = status
            yield bytes([8, status])

    def wake(self):
        with self.changed:
            self.watches -= 1
            self.changed.notify_all()


class Echo(grpc.GenericRpcHandler):
    """Answers each call with its name."""

    def __init__(self, name):
        self.name = name

    def service(self, details):
        if details.method != "/test.Echo/Name":
            return None
        return grpc.unary_unary_rpc_method_handler(lambda request, context: self.name.encode())


class PythonHealthTest(unittest.TestCase):
    mode = "watch"

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sluice.")
        self.addCleanup(temporary.cleanup)
        self.folder = folder = temporary.name
        self.health, endpoints = {}, ""
        for name in ("e0", "e1"):
            server = grpc.server(futures.ThreadPoolExecutor(8))
            self.health[name] = Health()
            self.health[name].set("test.Echo", SERVING)
            server.add_generic_rpc_handlers((self.health[name], Echo(name)))
            server.add_insecure_port(f"unix:{folder}/{name}.sock")
            server.start()
            self.addCleanup(lambda server=server: server.stop(None).wait(LONG_WAIT))
            endpoints += f'      - {{name: {name}, address: "unix:{folder}/{name}.sock"}}\n'
        with open(f"{folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'listeners:\n  - address: "unix:{folder}/listen.sock"\n'
                f'admin: {{grpc: "unix:{folder}/admin.sock"}}\n'
                f"clusters:\n  - name: echo\n    slow_start: {{window: 0s}}\n"
                f"    health: {{mode: {self.mode}, service: test.Echo, interval: 1s, fall: 1, rise: 1}}\n"
                f"    endpoints:\n{endpoints}"
                "routes:\n  - cluster: echo\n    hash_by: {metadata: x-key}\n")
        self.daemon = subprocess.Popen([f"{BIN}/sluiced", "-c", f"{folder}/sluice.yaml"], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.stop)
        self.channel = grpc.insecure_channel(f"unix:{folder}/listen.sock")
        self.addCleanup(self.channel.close)
        grpc.channel_ready_future(self.channel).result(timeout=LONG_WAIT)
        self.until({"e0": "up", "e1": "up"})

    def stop(self):
        self.daemon.terminate()
        output = self.daemon.communicate(timeout=LONG_WAIT)[0]
        self.assertEqual(self.daemon.returncode, 0, output)

    def shown(self):
        answer = subprocess.run([f"{BIN}/sluicectl", "--address", f"unix:{self.folder}/admin.sock", "--json", "endpoints",
                                 "echo"], check=True, stdout=subprocess.PIPE, text=True, timeout=LONG_WAIT)
        cluster = json.loads(answer.stdout)["clusters"][0]
        return {endpoint["name"]: endpoint["health"] for endpoint in cluster["endpoints"]}

    def wait(self, what, holds):
        end = time.monotonic() + LONG_WAIT
        while not holds():
            self.assertLess(time.monotonic(), end, f"{what}: {self.shown()}")
            time.sleep(0.02)

    def until(self, states):
        asked = "watch: " if self.mode == "watch" else "check: "
        self.wait(f"not {states}", lambda: all(
            health["state"] == states[name] and health.get("health_service", "").startswith(asked)
            and "no answer" not in health["health_service"] for name, health in self.shown().items()))

    def answering(self):
        name = self.channel.unary_unary("/test.Echo/Name")
        return {name(b"", metadata=[("x-key", f"key-{i}")], timeout=LONG_WAIT).decode() for i in range(40)}

    def test_calls_follow_what_it_says(self):
        self.assertEqual(self.answering(), {"e0", "e1"})
        self.health["e0"].set("test.Echo", NOT_SERVING)
        self.until({"e0": "not_serving", "e1": "up"})
        self.assertEqual(self.answering(), {"e1"})
        self.health["e0"].set("test.Echo", SERVING)
        self.until({"e0": "up", "e1": "up"})
        self.assertEqual(self.answering(), {"e0", "e1"})

    def test_one_stream_an_endpoint_that_ends_with_the_daemon(self):
        expected = 1 if self.mode == "watch" else 0
        for health in self.health.values():
            self.assertEqual(health.watches, expected)
        self.daemon.terminate()
        self.daemon.wait(LONG_WAIT)
        for name, health in self.health.items():
            with health.changed:
                self.assertTrue(health.changed.wait_for(lambda: health.watches == 0, LONG_WAIT), name)


class PythonCheckTest(PythonHealthTest):
    mode = "check"


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
