#!/usr/bin/python3
# open_metrics_test.py BIN: a daemon's /metrics, read by the OpenMetrics parser of Prometheus' client library for Python,
# with exemplars of calls that a collector has taken; and the plain text where that is not asked for.
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request
from concurrent import futures

import grpc
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from prometheus_client.parser import text_string_to_metric_families as plain_families

BIN = sys.argv[1]
LONG_WAIT = 30
OPEN = "application/openmetrics-text; version=1.0.0; charset=utf-8"
# As Prometheus 2.42 asks.
PROMETHEUS = ("application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
              "text/plain;version=0.0.4;q=0.5,*/*;q=0.1")
TRACE = "0af7651916cd43dd8448eb211c80319c"


class Answers(grpc.GenericRpcHandler):
    """A backend and a collector: answers each unary call with nothing, which is OK to both, and keeps what exports said."""

    def __init__(self):
        self.lock = threading.Lock()
        self.exports = b""

    def service(self, details):
        if details.method == "/opentelemetry.proto.collector.trace.v1.TraceService/Export":
            return grpc.unary_unary_rpc_method_handler(self.export)
        return grpc.unary_unary_rpc_method_handler(lambda request, context: b"")

    def export(self, request, context):
        with self.lock:
            self.exports += request
        return b""


class OpenMetricsTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sluice.")
        self.addCleanup(temporary.cleanup)
        folder = temporary.name
        server = grpc.server(futures.ThreadPoolExecutor(4))
        self.answers = Answers()
        server.add_generic_rpc_handlers((self.answers,))
        server.add_insecure_port(f"unix:{folder}/peer.sock")
        server.start()
        self.addCleanup(lambda: server.stop(None).wait(LONG_WAIT))
        with open(f"{folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'listeners:\n  - address: "unix:{folder}/listen.sock"\nadmin: {{http: "127.0.0.1:0"}}\n'
                f'clusters:\n  - name: c\n    endpoints: ["unix:{folder}/peer.sock"]\n'
                f"    rate_limit: {{rate: 1000}}\n"
                "routes:\n  - {name: '\"first\"', service: test.One, cluster: c}\n"
                "  - {name: second, cluster: c}\n"
                f'tracing: {{endpoint: "unix:{folder}/peer.sock"}}\n')
        self.daemon = subprocess.Popen([f"{BIN}/sluiced", "-c", f"{folder}/sluice.yaml"], stdout=subprocess.PIPE,
                                       stderr=subprocess.STDOUT, text=True)
        self.addCleanup(self.stop)
        self.url, said = None, ""
        while self.url is None:
            line = self.daemon.stdout.readline()
            said += line
            self.assertNotEqual(line, "", said)
            found = re.search(r"metrics on (http://[^ /]+)/", line)
            self.url = found and found.group(1) + "/metrics"
        self.channel = grpc.insecure_channel(f"unix:{folder}/listen.sock")
        self.addCleanup(self.channel.close)

    def stop(self):
        self.daemon.terminate()
        output = self.daemon.communicate(timeout=LONG_WAIT)[0]
        self.assertEqual(self.daemon.returncode, 0, output)

    def call(self, path, *metadata):
        self.channel.unary_unary(path)(b"x", metadata=metadata, timeout=LONG_WAIT, wait_for_ready=True)

    def scrape(self, accept):
        request = urllib.request.Request(self.url, headers={"Accept": accept})
        with urllib.request.urlopen(request, timeout=LONG_WAIT) as response:
            return response.headers["Content-Type"], response.read().decode("utf-8")

    def families(self):
        kind, text = self.scrape(PROMETHEUS)
        self.assertEqual(kind, OPEN)
        return {family.name: family for family in text_string_to_metric_families(text)}

    def wait_exported(self, calls):
        end = time.monotonic() + LONG_WAIT
        while True:
            for sample in self.families()["sluice_traced_calls"].samples:
                if sample.labels == {"result": "exported"} and sample.value == calls:
                    return
            self.assertLess(time.monotonic(), end, self.scrape("text/plain")[1])
            time.sleep(0.02)

    def test_it_is_read_by_a_parser(self):
        self.call("/test.One/Get")
        self.call("/test.Two/Get")
        families = self.families()
        self.assertEqual((families["sluice_calls"].type, families["sluice_calls"].unit), ("counter", ""))
        duration = families["sluice_call_duration_seconds"]
        self.assertEqual((duration.type, duration.unit), ("histogram", "seconds"))
        self.assertEqual(families["sluice_memory_held_bytes"].unit, "bytes")
        self.assertEqual(families["sluice_worker_cpu_seconds"].unit, "seconds")
        # A counter has no known type only where its family's name is another one's.
        for family in families.values():
            if family.type == "unknown":
                self.assertIn(family.name.removesuffix("_total"), families)
        # The same series as in the plain text, with the same texts of bounds; one may come between the two scrapes.
        def names(found):
            return {(sample.name, *sorted(sample.labels.items())) for family in found for sample in family.samples}

        end = time.monotonic() + LONG_WAIT
        while True:
            kind, text = self.scrape("*/*")
            self.assertEqual(kind, "text/plain; version=0.0.4; charset=utf-8")
            plain, families = names(plain_families(text)), self.families()
            if plain == names(families.values()) or time.monotonic() > end:
                break
        self.assertEqual(plain, names(families.values()))
        self.assertEqual([sample for family in families.values() for sample in family.samples if sample.exemplar], [])

    def test_traced_calls_are_exemplars(self):
        for i in range(3):
            self.call("/test.One/Get", ("traceparent", f"00-{TRACE[:-1]}{i}-b7ad6b716920333{i}-01"))
        self.call("/test.One/Get")
        self.call("/test.Two/Get", ("traceparent", f"00-{TRACE}-b7ad6b7169203331-00"))
        self.wait_exported(3)
        before = time.time()
        families, found = self.families(), []
        for family in families.values():
            for sample in family.samples:
                if sample.exemplar is None:
                    continue
                self.assertEqual(sample.name, "sluice_call_duration_seconds_bucket")
                self.assertEqual(sample.labels["route"], '"first"')
                found.append(sample.exemplar)
                labels = sample.exemplar.labels
                self.assertEqual(set(labels), {"trace_id", "span_id"})
                self.assertEqual(labels["trace_id"][:-1], TRACE[:-1])
                # OpenMetrics: names and values have at most 128 characters together.
                self.assertLessEqual(sum(len(name) + len(value) for name, value in labels.items()), 128)
                with self.answers.lock:
                    self.assertIn(bytes.fromhex(labels["span_id"]), self.answers.exports)
                self.assertLessEqual(sample.exemplar.value, float(sample.labels["le"]))
                self.assertGreater(sample.value, 0)
                self.assertLess(abs(float(sample.exemplar.timestamp) - before), LONG_WAIT)
        self.assertTrue(1 <= len(found) <= 3, found)
        self.assertIn(TRACE[:-1] + "2", [exemplar.labels["trace_id"] for exemplar in found], "the newest is there")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
