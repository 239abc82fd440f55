# TestService: gRPC's interop service as far as browsers can call it, on a port of loopback, with what it has seen.
import threading
import time
from concurrent import futures

import grpc

ECHO_INITIAL = "x-grpc-test-echo-initial"
ECHO_TRAILING = "x-grpc-test-echo-trailing-bin"
DETAILS = "x-test-details-bin"  # comes back as grpc-status-details-bin


class TestService:
    # `messages`: the module that protoc has made of test_service.proto.
    def __init__(self, messages):
        self.messages = messages
        self._lock = threading.Lock()
        self.seen = []  # metadata of each call, as a dict
        self.cancelled = 0
        self._server = grpc.server(futures.ThreadPoolExecutor(max_workers=16))
        unary, stream = grpc.unary_unary_rpc_method_handler, grpc.unary_stream_rpc_method_handler
        self._server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.testing.TestService", {
            "EmptyCall": unary(self._empty, messages.Empty.FromString, messages.Empty.SerializeToString),
            "UnaryCall": unary(self._unary, messages.SimpleRequest.FromString, messages.SimpleResponse.SerializeToString),
            "StreamingOutputCall": stream(self._streaming, messages.StreamingOutputCallRequest.FromString,
                                          messages.StreamingOutputCallResponse.SerializeToString)}),))
        self.port = self._server.add_insecure_port("127.0.0.1:0")
        self._server.start()

    def stop(self):
        self._server.stop(None).wait()

    # Those of calls with `name` in their metadata.
    def calls_with(self, name, value):
        with self._lock:
            return [seen for seen in self.seen if seen.get(name) == value]

    def _note(self, context):
        metadata = dict(context.invocation_metadata())
        with self._lock:
            self.seen.append(metadata)
        if ECHO_INITIAL in metadata:
            context.send_initial_metadata(((ECHO_INITIAL, metadata[ECHO_INITIAL]),))
        trailing = []
        if ECHO_TRAILING in metadata:
            trailing.append((ECHO_TRAILING, metadata[ECHO_TRAILING]))
        if DETAILS in metadata:
            trailing.append(("grpc-status-details-bin", metadata[DETAILS]))
        context.set_trailing_metadata(tuple(trailing))

    @staticmethod
    def _end(request, context):
        if request.response_status.code != 0:
            context.set_code(next(code for code in grpc.StatusCode if code.value[0] == request.response_status.code))
            context.set_details(request.response_status.message)

    def _payload(self, size):
        return self.messages.Payload(body=bytes(size))

    def _empty(self, request, context):
        self._note(context)
        return self.messages.Empty()

    def _unary(self, request, context):
        self._note(context)
        self._end(request, context)
        return self.messages.SimpleResponse(payload=self._payload(request.response_size))

    def _streaming(self, request, context):
        self._note(context)
        for parameters in request.response_parameters:
            end = time.monotonic() + parameters.interval_us / 1e6
            while context.is_active() and time.monotonic() < end:
                threading.Event().wait(0.01)
            if not context.is_active():
                with self._lock:
                    self.cancelled += 1
                return
            yield self.messages.StreamingOutputCallResponse(payload=self._payload(parameters.size))
        self._end(request, context)
