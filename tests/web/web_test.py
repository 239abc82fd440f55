# gRPC-Web as pages in Chromium use it, through the daemon, over TLS and HTTP/2, from another origin: npm's grpc-web in both of its modes,
# and connect-web; the cases of gRPC-Web's own interop tests, and what a proxy adds.
#   web_test.py BIN PROTO [TEST...]    SLUICE_WEB_MODULES: the folder with the npm modules
import base64
import http.server
import json
import os
import subprocess
import sys
import threading
import time
import urllib.request

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "..", "faults"), os.path.join(here, "..", "browser"), here]

from chromium import Browser  # pylint: disable=wrong-import-position
from rig.case import FaultTest, main  # pylint: disable=wrong-import-position
from rig.wait import eventually  # pylint: disable=wrong-import-position
from test_service import DETAILS, ECHO_INITIAL, ECHO_TRAILING, TestService  # pylint: disable=wrong-import-position

KINDS = ("text", "binary", "connect")
MODULES = os.environ["SLUICE_WEB_MODULES"]
FILES = {"/": ("page.html", "text/html"), "/client.js": ("client.js", "text/javascript"),
         "/test_service.proto": ("test_service.proto", "text/plain")}
SIZES = [31415, 9, 2653, 58979]
SPECIAL = "\t\ntest with whitespace\r\nand Unicode BMP ☺ and non-BMP 😈\t\n"
EXPOSE = [ECHO_INITIAL, "sluice-cache", "sluice-reason"]


# What a page is made of, on 127.0.0.1; each server is an origin.
class Site:
    def __init__(self, descriptors):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):  # pylint: disable=invalid-name
                if self.path in FILES:
                    name, kind = FILES[self.path]
                    name = os.path.join(here, name)
                elif self.path.startswith("/modules/") and ".." not in self.path:
                    name, kind = os.path.join(MODULES, self.path[len("/modules/"):]), "text/javascript"
                else:
                    name, kind = descriptors, "application/octet-stream"
                with open(name, "rb") as file:
                    body = file.read()
                self.send_response(200)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):  # pylint: disable=arguments-differ
                pass

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def close(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class WebTest(FaultTest):
    @classmethod
    def setUpClass(cls):
        cls.browser = Browser(["--ignore-certificate-errors", "--disable-quic"])
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        subprocess.run(["protoc", "-I", here, "--python_out", f"{self.folder}/proto",
                        "--descriptor_set_out", f"{self.folder}/test_service.pb", "test_service.proto"], check=True)
        import test_service_pb2  # pylint: disable=import-error,import-outside-toplevel
        self.service = TestService(test_service_pb2)
        self.addCleanup(self.service.stop)
        self.site = Site(f"{self.folder}/test_service.pb")
        self.addCleanup(self.site.close)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                        "-subj", "/CN=sluice", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{self.folder}/key.pem",
                        "-out", f"{self.folder}/cert.pem"], check=True, capture_output=True)
        self.start_daemon(listen="127.0.0.1:0")
        self.url = f"https://{self.listen}"
        self.page = self.open(self.site)

    def write_config(self, cluster="", listener="", top="", endpoints=None):
        with open(f"{self.folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'workers: 2\nlisteners:\n  - address: "{self.listen}"\n'
                f"    tls: {{certificate: cert.pem, key: key.pem}}\n"
                f"    grpc_web:\n      cors:\n        origins: [\"{self.site.origin}\"]\n"
                f"        headers: [{ECHO_INITIAL}, {ECHO_TRAILING}, {DETAILS}, x-case, x-role, deadline]\n"
                f"        expose: {str(EXPOSE).replace(chr(39), '')}\n"
                f'admin: {{grpc: "unix:{self.folder}/admin.sock", http: 127.0.0.1:0}}\ncache: {{capacity: 1MiB}}\n'
                f'clusters:\n  - {{name: test, endpoints: ["127.0.0.1:{self.service.port}"]}}\n'
                f"routes:\n  - {{cluster: test, service: grpc.testing.TestService, method: EmptyCall, cache: {{ttl: 1m}}}}\n"
                f"  - {{cluster: test, service: grpc.testing.TestService,\n"
                f"     access: [{{action: deny, metadata: [{{name: x-role, exact: guest}}]}}, {{action: allow}}]}}\n")

    def open(self, site):
        page = self.browser.page()
        page.open(site.origin + "/")
        eventually(lambda: page.value("window.ready === true"), "the page's scripts have run")
        return page

    def call(self, kind, method, page=None, **options):
        text = json.dumps({"kind": kind, "url": self.url, "method": method, **options})
        return {"kind": kind, **(page or self.page).value(f"window.call({text})")}

    def metric(self, name):
        http_url = self.daemon.said(r"status page and metrics on (http://\S+/)").group(1)
        with urllib.request.urlopen(http_url + "metrics") as answer:
            lines = answer.read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(name))

    # --- The cases of gRPC-Web's interop tests ---

    def test_empty_unary(self):
        for kind in KINDS:
            result = self.call(kind, "EmptyCall")
            self.assertEqual((result["code"], result["messages"]), (0, [0]), result)
        self.assertEqual(set(self.page.protocols[f"{self.url}/grpc.testing.TestService/EmptyCall"]), {"h2"})

    def test_large_unary(self):
        for kind in KINDS:
            result = self.call(kind, "UnaryCall", request={"response_size": 314159}, payload=271828)
            self.assertEqual((result["code"], result["messages"]), (0, [314159]), result)

    def test_server_streaming(self):
        for kind in KINDS:
            result = self.call(kind, "StreamingOutputCall", request={"response_parameters": [{"size": size} for size in SIZES]})
            self.assertEqual((result["code"], result["messages"]), (0, SIZES), result)

    def test_custom_metadata(self):
        for kind in KINDS:
            for method, request in (("UnaryCall", {"response_size": 314159}),
                                    ("StreamingOutputCall", {"response_parameters": [{"size": 314159}]})):
                result = self.call(kind, method, request=request, payload=271828,
                                   metadata={ECHO_INITIAL: "test_initial_metadata_value", ECHO_TRAILING: "q6ur"})
                self.assertEqual((result["code"], result["messages"]), (0, [314159]), result)
                self.assertEqual(result["initial"][ECHO_INITIAL], "test_initial_metadata_value")
                self.assertEqual(result["trailing"][ECHO_TRAILING], "q6ur")

    def test_status_code_and_message(self):
        for kind in KINDS:
            for method in ("UnaryCall", "StreamingOutputCall"):
                for message in ("test status message", SPECIAL):
                    result = self.call(kind, method, request={"response_status": {"code": 2, "message": message}})
                    self.assertEqual((result["code"], result["message"]), (2, message), result)

    def test_unimplemented_method_and_service(self):
        for kind in KINDS:
            self.assertEqual(self.call(kind, "UnimplementedCall")["code"], 12)
            result = self.call(kind, "UnimplementedCall", service="UnimplementedService")
            self.assertEqual(result["code"], 12)
            self.assertIn("no route", result["message"])  # the proxy's own error
            self.assertEqual(result["trailing"]["sluice-reason"], "no_route")

    # --- More than that ---

    def test_details_of_errors(self):
        for kind in KINDS:
            for parameters in ([], [{"size": 5}]):  # in headers alone, and behind a message
                result = self.call(kind, "StreamingOutputCall", metadata={DETAILS: "CAUSBGdvbmU"},
                                   request={"response_parameters": parameters, "response_status": {"code": 5, "message": "gone"}})
                self.assertEqual((result["code"], result["message"]), (5, "gone"), result)
                self.assertEqual(result["messages"], [5] * len(parameters))
                self.assertEqual(result["trailing"]["grpc-status-details-bin"].rstrip("="), "CAUSBGdvbmU")

    # Text and connect-web show messages as they come; npm's binary mode waits for the end itself.
    def test_messages_come_as_they_are_sent(self):
        for kind in ("text", "connect"):
            result = self.call(kind, "StreamingOutputCall", request={
                "response_parameters": [{"size": 1}, {"size": 2, "interval_us": 700000}, {"size": 3, "interval_us": 700000}]})
            self.assertEqual((result["code"], result["messages"]), (0, [1, 2, 3]), result)
            times = result["times"]
            self.assertGreater(times[1] - times[0], 350, result)
            self.assertGreater(times[2] - times[1], 350, result)

    def test_deadline(self):
        slow = {"response_parameters": [{"size": 1}, {"size": 2, "interval_us": 60_000_000}]}
        for kind in KINDS:
            metadata = {} if kind == "connect" else {"deadline": str(int(time.time() * 1000) + 500)}
            result = self.call(kind, "StreamingOutputCall", request=slow, metadata=metadata, timeoutMs=500)
            self.assertEqual(result["code"], 4, result)

    # The status is in the headers while there is no message, then in the body.
    def test_deadline_without_a_timer_of_the_page(self):
        messages = self.service.messages
        last = messages.ResponseParameters(size=2, interval_us=60_000_000)
        for first in ([], [messages.ResponseParameters(size=1)]):
            message = messages.StreamingOutputCallRequest(response_parameters=[*first, last]).SerializeToString()
            body = base64.b64encode(bytes([0, 0, 0, 0, len(message)]) + message).decode()
            answer = self.raw("StreamingOutputCall", {"content-type": "application/grpc-web-text", "grpc-timeout": "1S"}, body)
            self.assertEqual(answer["status"], 200, answer)
            self.assertEqual(answer["headers"]["content-type"], "application/grpc-web-text+proto")
            if not first:
                self.assertEqual((answer["headers"]["grpc-status"], answer["text"]), ("4", ""), answer)
                continue
            text = answer["text"]
            decoded = b"".join(base64.b64decode(text[i:i + 4], validate=True) for i in range(0, len(text), 4))
            self.assertIn(b"grpc-status: 4\r\n", decoded)

    def raw(self, method, headers, body):
        text = json.dumps({"url": self.url, "path": f"/grpc.testing.TestService/{method}", "headers": headers, "body": body})
        return self.page.value(f"window.raw({text})")

    def test_text_that_is_none(self):
        answer = self.raw("EmptyCall", {"content-type": "application/grpc-web-text"}, "AAAA!")
        self.assertEqual((answer["headers"]["grpc-status"], answer["headers"]["sluice-reason"]), ("13", "malformed_request"), answer)

    def test_cancelled_in_the_middle(self):
        slow = {"response_parameters": [{"size": 1}, {"size": 2, "interval_us": 60_000_000}]}
        for count, kind in enumerate(("text", "connect"), 1):
            result = self.call(kind, "StreamingOutputCall", request=slow, cancelAfter=1)
            self.assertEqual(result["messages"], [1], result)
            eventually(lambda count=count: self.service.cancelled == count, "the endpoint's call is cancelled")

    def test_a_refusal_can_be_read(self):
        for kind in KINDS:
            result = self.call(kind, "UnaryCall", metadata={"x-role": "guest"})
            self.assertEqual(result["code"], 7, result)
            self.assertEqual(result["trailing"]["sluice-reason"], "access_denied")

    def test_stored_responses(self):
        outcomes = []
        for kind in (*KINDS, *KINDS):
            result = self.call(kind, "EmptyCall")
            self.assertEqual((result["code"], result["messages"]), (0, [0]), result)
            outcomes.append(result["initial"].get("sluice-cache"))
        self.assertEqual(outcomes[1:], ["hit"] * 5, outcomes)
        self.assertEqual(len(self.service.seen), 1)

    # --- CORS ---

    def test_other_origins_are_refused(self):
        elsewhere = Site(f"{self.folder}/test_service.pb")
        self.addCleanup(elsewhere.close)
        page = self.open(elsewhere)
        for kind in KINDS:
            result = self.call(kind, "UnaryCall", page=page, metadata={"x-case": "elsewhere"})
            self.assertNotEqual(result["code"], 0)
        self.assertEqual(self.service.calls_with("x-case", "elsewhere"), [])
        self.assertEqual(self.metric('sluice_cors_preflights_total{origin="refused"}'), 3)

    def test_headers_that_are_not_listed_are_refused(self):
        self.assertEqual(self.call("text", "UnaryCall", metadata={"x-case": "listed"})["code"], 0)
        self.assertNotEqual(self.call("text", "UnaryCall", metadata={"x-case": "other", "x-other": "1"})["code"], 0)
        self.assertEqual(len(self.service.calls_with("x-case", "listed")), 1)
        self.assertEqual(self.service.calls_with("x-case", "other"), [])
        self.assertEqual(self.metric('sluice_grpc_web_requests_total{encoding="text"}'), 1)


if __name__ == "__main__":
    main()
