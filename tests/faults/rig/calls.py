# Calls: what came of each, and loads that make them until told to stop.
import threading
import time

import grpc

from rig.wait import LONG_WAIT


class Outcome:
    def __init__(self, begun, key, reply, error):
        self.begun, self.ended, self.key = begun, time.monotonic(), key
        self.backend = reply.backend if reply is not None else None
        self.code = error.code() if error is not None else grpc.StatusCode.OK
        self.details = error.details() if error is not None else ""
        self.reason = dict(error.trailing_metadata() or ()).get("sluice-reason", "") if error is not None else ""

    def __repr__(self):
        return f"{self.key}: {self.code.name} {self.reason} {self.details} backend={self.backend} {self.ended - self.begun:.3f} s"


class Client:
    # One connection of its own, made again by gRPC when it is lost. `rig` has the messages.
    def __init__(self, rig, target, options=()):
        self.pb = rig.echo
        self.channel = grpc.insecure_channel(target, options=[
            ("grpc.use_local_subchannel_pool", 1), ("grpc.enable_retries", 0),
            ("grpc.min_reconnect_backoff_ms", 50), ("grpc.initial_reconnect_backoff_ms", 50),
            ("grpc.max_reconnect_backoff_ms", 200), ("grpc.max_receive_message_length", -1), *options])
        self.unary = self._method("unary_unary", "Unary")
        self.stream = self._method("unary_stream", "ServerStream")

    def _method(self, kind, name):
        return getattr(self.channel, kind)(
            f"/sluice.echo.v1.Echo/{name}", request_serializer=self.pb.EchoRequest.SerializeToString,
            response_deserializer=self.pb.EchoReply.FromString)

    def call(self, key="a", timeout=LONG_WAIT, wait=False, **request):
        return self.finish(*self.begin(key, timeout, wait, **request))

    # For finish().
    def begin(self, key="a", timeout=LONG_WAIT, wait=False, **request):
        begun = time.monotonic()
        return begun, key, self.unary.future(self.pb.EchoRequest(**request), metadata=[("x-key", key)], timeout=timeout,
                                             wait_for_ready=wait)

    def finish(self, begun, key, future):
        try:
            return Outcome(begun, key, future.result(), None)
        except grpc.RpcError as error:
            return Outcome(begun, key, None, error)

    def close(self):
        self.channel.close()


# `threads` callers, each with a connection of its own and one call at a time, over 64 keys.
class Load:
    def __init__(self, rig, target, threads=4, timeout=LONG_WAIT, wait=False):
        self.outcomes = []  # list.append is atomic
        self._end = threading.Event()
        self._clients = [Client(rig, target) for _ in range(threads)]
        self._timeout, self._wait = timeout, wait
        self._threads = [threading.Thread(target=self._run, args=(i, c), daemon=True) for i, c in enumerate(self._clients)]
        for thread in self._threads:
            thread.start()

    def _run(self, number, client):
        turn = number
        while not self._end.is_set():
            self.outcomes.append(client.call(f"key-{turn % 64}", self._timeout, self._wait))
            turn += 1

    # Calls that ended until now.
    def done(self):
        return len(self.outcomes)

    def stop(self):
        self._end.set()
        for thread in self._threads:
            thread.join(LONG_WAIT)
        for client in self._clients:
            client.close()
        return self.outcomes
