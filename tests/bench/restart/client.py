#!/usr/bin/env python3
# grpc-python as it is by default, calling at a steady rate and holding streams open; the protocol is that of src/client.cc.
"""python3 client.py --target 127.0.0.1:7070 --rate 500 --channels 4 --streams 20 --stream-seconds 15"""
import argparse
import sys
import threading
import time

import grpc

from client_tally import Tally

CALL, STREAM = "/sluice.bench.Calls/Hold", "/sluice.bench.Streams/Stream"
MESSAGE = b"x" * 16
DEADLINE = 10
INTERVAL = 0.1  # between the messages of a stream
OUTSTANDING_MAX = 5000


def text(error):
    return f"{error.code().name}: {error.details()}"


class Streams:
    """Each stream has a thread: a message, its echo, a pause. The stream is ended by the client after its time."""

    def __init__(self, options, channels, tally):
        self.options, self.tally, self.channels = options, tally, channels
        self.stop = threading.Event()
        self.answered = [False] * options.streams
        self.threads = [threading.Thread(target=self.run, args=(i,), daemon=True) for i in range(options.streams)]
        for thread in self.threads:
            thread.start()

    def run(self, index):
        # The first ones have different lives, so that they do not all end at once.
        life = self.options.stream_seconds * (0.2 + 0.8 * (index + 1) / self.options.streams)
        method = self.channels[index % len(self.channels)].stream_stream(STREAM)
        while not self.stop.is_set():
            self.one(index, method, life)
            life = self.options.stream_seconds
            self.stop.wait(INTERVAL)

    def one(self, index, method, life):
        end, go_on, answered = time.monotonic() + life, threading.Semaphore(1), False
        sent = [time.monotonic()]
        closed = threading.Event()

        def messages():
            # The semaphore is released for each message to send; without one to send the stream is over.
            while True:
                go_on.acquire()
                if closed.is_set():
                    return
                sent[0] = time.monotonic()
                yield MESSAGE

        call = method(messages())
        watch = Watch(call, sent)
        try:
            for _ in call:
                if closed.is_set():
                    break
                self.tally.stream_answered(time.monotonic() - sent[0])
                answered = self.answered[index] = True
                watch.pause()
                if self.stop.wait(max(0, sent[0] + INTERVAL - time.monotonic())):
                    call.cancel()
                    return
                if time.monotonic() >= end:
                    closed.set()
                watch.resume()
                go_on.release()
            self.tally.stream_ended(closed.is_set(), answered, "OK: before its end")
        except grpc.RpcError as error:
            if not self.stop.is_set():
                self.tally.stream_ended(False, answered, text(error))
        finally:
            watch.end()
            closed.set()
            go_on.release()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(2)


class Watch:
    """Cancels a stream whose echo does not come."""

    watched, lock, thread = set(), threading.Lock(), None

    def __init__(self, call, sent):
        self.call, self.sent, self.waits = call, sent, True
        with Watch.lock:
            Watch.watched.add(self)
            if Watch.thread is None:
                Watch.thread = threading.Thread(target=Watch.look, daemon=True)
                Watch.thread.start()

    def pause(self):
        self.waits = False

    def resume(self):
        self.sent[0] = time.monotonic()
        self.waits = True

    def end(self):
        with Watch.lock:
            Watch.watched.discard(self)

    @staticmethod
    def look():
        while True:
            time.sleep(0.5)
            with Watch.lock:
                late = [w for w in Watch.watched if w.waits and time.monotonic() - w.sent[0] > DEADLINE]
            for watch in late:
                watch.call.cancel()


def make_calls(options, channels, tally, stop, streams):
    methods = [channel.unary_unary(CALL) for channel in channels]
    start, made, ready = time.monotonic(), 0, False
    while not stop.is_set():
        now = time.monotonic()
        due = int((now - start) * options.rate)
        if made < due:
            tally.late(now - (start + made / options.rate))
        while made < due and tally.outstanding < OUTSTANDING_MAX:
            make_call(methods, made % len(methods), tally)
            made += 1
        if not ready and tally.all_answered() and (all(streams.answered) or now - start > DEADLINE):
            ready = True
            print("ready", flush=True)
        time.sleep(0.002)
    tally.stop()
    end = time.monotonic() + DEADLINE + 2
    while tally.outstanding and time.monotonic() < end:
        time.sleep(0.01)


def make_call(methods, channel, tally):
    begun = time.monotonic()
    tally.call_begun()

    def ended(call):
        ok = call.code() is grpc.StatusCode.OK
        tally.call_ended(channel, None if ok else text(call), time.monotonic() - begun)
    methods[channel].future(MESSAGE, timeout=DEADLINE).add_done_callback(ended)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="127.0.0.1:7070")
    parser.add_argument("--rate", type=float, default=100)
    parser.add_argument("--channels", type=int, default=4)
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--stream-seconds", type=float, default=15)
    options = parser.parse_args()
    # The one thing that is not the default: without it all channels to one target share a connection.
    arguments = [("grpc.use_local_subchannel_pool", 1)]
    channels = [grpc.insecure_channel(options.target, options=arguments) for _ in range(options.channels)]
    tally, stop = Tally("python", options.channels), threading.Event()
    streams = Streams(options, channels, tally)
    pacer = threading.Thread(target=make_calls, args=(options, channels, tally, stop, streams))
    pacer.start()
    for line in sys.stdin:
        if line.strip() == "go":
            tally.restart()
    stop.set()
    pacer.join()
    streams.end()
    print(tally.json(), flush=True)


if __name__ == "__main__":
    main()
