# Tally: what a Python client of tests/bench/restart has noticed; the same fields as src/client_tally.h. Thread safe.
import json
import threading
import time

EVENTS_MAX = 20000  # failures with their time; more are only counted


class Tally:
    def __init__(self, client, channels):
        self.client, self.lock = client, threading.Lock()
        self.answered_at = [None] * channels
        self.outstanding = 0
        self.restart()

    def restart(self):
        with self.lock:
            self.calls = self.streams = self.messages = 0
            self.gap = self.gap_at = self.lag = self.stream_wait = 0.0
            self.latencies, self.events = [], []
            self.failed, self.broken, self.unopened = {}, {}, {}

    def call_begun(self):
        with self.lock:
            self.outstanding += 1

    def call_ended(self, channel, status, took):
        """`status`: None where the call succeeded; `took` in seconds."""
        now = time.monotonic()
        with self.lock:
            self.outstanding -= 1
            self.calls += 1
            if status is not None:
                return self.fail("call", status, self.failed)
            self.note_gap(self.answered_at[channel], now)
            self.answered_at[channel] = now
            self.latencies.append(took)

    def note_gap(self, before, now):
        if before is not None and now - before > self.gap:
            self.gap, self.gap_at = now - before, time.time()

    def stop(self):
        """No more calls are made: a channel without an answer since long has a gap too."""
        with self.lock:
            for at in self.answered_at:
                self.note_gap(at, time.monotonic())

    def fail(self, what, status, counts):
        counts[status] = counts.get(status, 0) + 1
        if len(self.events) < EVENTS_MAX:
            self.events.append([time.time(), what, status])

    def stream_answered(self, took):
        with self.lock:
            self.messages += 1
            self.stream_wait = max(self.stream_wait, took)

    def stream_ended(self, ok, answered, status):
        with self.lock:
            self.streams += 1
            if not ok:
                self.fail("stream" if answered else "open", status, self.broken if answered else self.unopened)

    def late(self, seconds):
        with self.lock:
            self.lag = max(self.lag, seconds)

    def all_answered(self):
        with self.lock:
            return None not in self.answered_at

    def json(self):
        with self.lock:
            self.latencies.sort()
            last = len(self.latencies) - 1

            def quantile(q):
                return self.latencies[int(q * last)] * 1e3 if self.latencies else 0
            return json.dumps(dict(
                client=self.client, calls=self.calls, failed=self.failed, gap_ms=self.gap * 1e3, gap_at=self.gap_at,
                lag_ms=self.lag * 1e3, p50_ms=quantile(0.5), p99_ms=quantile(0.99), max_ms=quantile(1), streams=self.streams, broken=self.broken,
                unopened=self.unopened, messages=self.messages, stream_wait_ms=self.stream_wait * 1e3, events=self.events))
