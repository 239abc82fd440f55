#!/usr/bin/python3
# python_client_test.py BIN PROTO: a gRPC client of another implementation (python3-grpcio) calls through the daemon.
import os
import subprocess
import sys
import tempfile
import unittest

import grpc

BIN, PROTO = sys.argv[1:3]
LONG_WAIT = 30


class Child:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def stop(self):
        self.process.terminate()
        output = self.process.communicate(timeout=LONG_WAIT)[0]
        return self.process.returncode, output


class PythonClientTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="sluice.")
        folder = cls.folder.name
        subprocess.run(["protoc", "-I", PROTO, "--python_out", folder, "sluice/echo/v1/echo.proto"], check=True)
        sys.path.insert(0, folder)
        from sluice.echo.v1 import echo_pb2
        cls.pb = echo_pb2
        cls.backends = []
        endpoints = ""
        for name in ("echo-1", "echo-2"):
            backend = Child(f"{BIN}/sluice-echo", "server", "--listen", f"unix:{folder}/{name}.sock", "--name", name)
            assert "listening" in backend.process.stdout.readline()
            cls.backends.append(backend)
            endpoints += f'      - {{name: {name}, address: "unix:{folder}/{name}.sock"}}\n'
        with open(f"{folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(
                f'listeners:\n  - address: "unix:{folder}/listen.sock"\n'
                f'admin: {{grpc: "unix:{folder}/admin.sock"}}\n'
                f"clusters:\n  - name: echo\n    endpoints:\n{endpoints}"
                "routes:\n  - cluster: echo\n    hash_by: {metadata: x-key}\n")
        cls.daemon = Child(f"{BIN}/sluiced", "-c", f"{folder}/sluice.yaml")
        cls.channel = grpc.insecure_channel(f"unix:{folder}/listen.sock", options=[
            ("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)])
        grpc.channel_ready_future(cls.channel).result(timeout=LONG_WAIT)

    @classmethod
    def tearDownClass(cls):
        cls.channel.close()
        code, output = cls.daemon.stop()
        for backend in cls.backends:
            backend.stop()
        cls.folder.cleanup()
        assert code == 0, output

    def method(self, kind, name):
        return getattr(self.channel, kind)(
            f"/sluice.echo.v1.Echo/{name}", request_serializer=self.pb.EchoRequest.SerializeToString,
            response_deserializer=self.pb.EchoReply.FromString)

    def test_unary(self):
        reply, call = self.method("unary_unary", "Unary").with_call(
            self.pb.EchoRequest(payload=b"hello"), metadata=[("x-key", "a")], timeout=LONG_WAIT)
        self.assertEqual(reply.payload, b"hello")
        self.assertEqual(dict(call.initial_metadata())["echo-backend"], reply.backend)
        self.assertEqual(dict(call.trailing_metadata())["echo-backend"], reply.backend)

    def test_server_stream(self):
        replies = self.method("unary_stream", "ServerStream")(self.pb.EchoRequest(payload=b"x", reply_count=100), timeout=LONG_WAIT)
        self.assertEqual([reply.index for reply in replies], list(range(100)))

    def test_client_stream(self):
        reply = self.method("stream_unary", "ClientStream")(
            (self.pb.EchoRequest(payload=bytes([i])) for i in range(100)), timeout=LONG_WAIT)
        self.assertEqual((reply.received_messages, reply.received_bytes), (100, 100))

    def test_bidi_stream(self):
        replies = self.method("stream_stream", "BidiStream")(
            (self.pb.EchoRequest(payload=bytes([i])) for i in range(100)), timeout=LONG_WAIT)
        self.assertEqual([reply.payload[0] for reply in replies], list(range(100)))

    def test_empty_streams(self):
        self.assertEqual(list(self.method("unary_stream", "ServerStream")(self.pb.EchoRequest(), timeout=LONG_WAIT)), [])
        self.assertEqual(self.method("stream_unary", "ClientStream")(iter(()), timeout=LONG_WAIT).received_messages, 0)
        self.assertEqual(list(self.method("stream_stream", "BidiStream")(iter(()), timeout=LONG_WAIT)), [])

    def test_large_message(self):
        payload = os.urandom(1 << 20) * 64
        reply = self.method("unary_unary", "Unary")(self.pb.EchoRequest(payload=payload), timeout=LONG_WAIT)
        self.assertTrue(reply.payload == payload)

    def test_error_with_message_and_details(self):
        failure = self.pb.Failure(code=5, message="größer als 100%", details=b"\x00\xff")
        with self.assertRaises(grpc.RpcError) as caught:
            self.method("unary_unary", "Unary")(self.pb.EchoRequest(failure=failure), timeout=LONG_WAIT)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.NOT_FOUND)
        self.assertEqual(caught.exception.details(), "größer als 100%")
        self.assertEqual(dict(caught.exception.trailing_metadata())["grpc-status-details-bin"], b"\x00\xff")

    def test_deadline(self):
        with self.assertRaises(grpc.RpcError) as caught:
            self.method("unary_unary", "Unary")(self.pb.EchoRequest(delay_ms=3600000), timeout=0.2)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.DEADLINE_EXCEEDED)

    def test_cancel(self):
        call = self.method("unary_stream", "ServerStream")(
            self.pb.EchoRequest(reply_count=2, reply_interval_ms=3600000), timeout=LONG_WAIT)
        self.assertEqual(next(call).index, 0)
        call.cancel()
        with self.assertRaises(grpc.RpcError) as caught:
            next(call)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.CANCELLED)

    def test_metadata_keeps_its_order_and_its_bytes(self):
        sent = [("x-many", "b"), ("x-many", "a"), ("x-many", "b"), ("x-raw-bin", bytes(range(256)))]
        reply = self.method("unary_unary", "Unary")(self.pb.EchoRequest(return_metadata=True), metadata=sent, timeout=LONG_WAIT)
        seen = [(field.key, field.value) for field in reply.metadata if field.key.startswith("x-")]
        self.assertEqual(seen, [("x-many", b"b"), ("x-many", b"a"), ("x-many", b"b"), ("x-raw-bin", bytes(range(256)))])

    def test_a_key_stays_on_its_backend(self):
        unary = self.method("unary_unary", "Unary")
        first = [unary(self.pb.EchoRequest(), metadata=[("x-key", str(i))], timeout=LONG_WAIT).backend for i in range(100)]
        again = [unary(self.pb.EchoRequest(), metadata=[("x-key", str(i))], timeout=LONG_WAIT).backend for i in range(100)]
        self.assertEqual(first, again)
        self.assertEqual(set(first), {"echo-1", "echo-2"})

    def test_gzip(self):
        reply = self.method("unary_unary", "Unary")(
            self.pb.EchoRequest(payload=b"z" * 100000), compression=grpc.Compression.Gzip, timeout=LONG_WAIT)
        self.assertEqual(reply.payload, b"z" * 100000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
