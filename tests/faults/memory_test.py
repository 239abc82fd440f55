#!/usr/bin/python3
# memory_test.py BIN PROTO: what clients that do not read can make the daemon hold.
import threading

import grpc
from rig.case import FaultTest, main
from rig.wait import eventually

OK = grpc.StatusCode.OK
MIB = 1 << 20
STREAMS, WINDOW = 128, MIB // 4
# Beside the windows: buffers of connections and calls, the allocator's, the backends' share of a turn.
SLACK = 16 * MIB


class MemoryTest(FaultTest):
    # Server streams without end that are not read, on four connections. gRPC takes a few messages by itself.
    def stall(self):
        calls = []
        for i in range(STREAMS):
            if i % 32 == 0:
                client = self.client_that_reads_little()
            calls.append(client.stream(self.echo.EchoRequest(reply_count=1 << 30, reply_bytes=1 << 14),
                                       metadata=[("x-key", f"key-{i}")]))
        # Each message of gRPC's is read when it is asked for.
        for call in calls:
            threading.Thread(target=lambda call=call: next(call, None), daemon=True).start()
        return calls

    def client_that_reads_little(self):
        from rig.calls import Client
        client = Client(self, self.listen, [("grpc.http2.bdp_probe", 0), ("grpc.http2.lookahead_bytes", 65535)])
        self.addCleanup(client.close)
        return client

    # Bytes buffered, once they grow no more.
    def settled(self):
        seen = []

        def still():
            seen.append(self.metric("sluice_buffered_bytes"))
            return len(seen) > 20 and max(seen[-20:]) <= seen[-20]
        eventually(still, "what is buffered grows no more")
        return max(seen)

    def end(self, calls):
        for call in calls:
            call.cancel()
        eventually(lambda: self.ask("GetServer").calls_in_flight == 0, "the calls have ended")

    def test_clients_that_do_not_read_hold_their_windows_and_no_more(self):
        self.start_backends(3)
        self.start_daemon(cluster=f"http2: {{stream_window_bytes: {WINDOW}}}")
        honest = self.client()
        self.assertEqual(honest.call().code, OK)
        before = self.daemon.resident()
        resident = []
        for _ in range(3):
            calls = self.stall()
            eventually(lambda: self.ask("GetServer").calls_in_flight >= STREAMS, "all are under way")
            buffered = self.settled()
            self.assertLessEqual(buffered, STREAMS * WINDOW + SLACK)
            resident.append(self.daemon.resident() - before)
            self.assertLessEqual(resident[-1], STREAMS * WINDOW + SLACK)
            # Calls of others go on, also to the same backends over the same connections.
            for i in range(100):
                outcome = honest.call(f"key-{i}", timeout=10)
                self.assertEqual(outcome.code, OK, outcome)
            self.end(calls)
            self.assertLess(self.metric("sluice_buffered_bytes"), SLACK)
        print(f"buffered {buffered / MIB:.1f} MiB, resident beside the start: {[round(r / MIB, 1) for r in resident]} MiB")


if __name__ == "__main__":
    main()
