#!/usr/bin/python3
# moved_deadlines_test.py BIN [--rounds N | --minutes M] [--calls N]: calls that moved end by the thousand while their clients write to them.
"""Each round opens 6 connections on a worker that is kept busy, so that their calls move to the other one; 1,000 calls on each,
with a deadline of 400 ms; when that comes, DATA on half of the calls and RST_STREAM on the others. What the busy worker writes
about a call is then on its way while the call ends (docs/call-movement.md, "Addresses in mail").

ctest runs a few rounds. By hand, the release build for many rounds, and the ASan build for minutes:

    tests/integration/moved_deadlines_test.py build/release/bin --rounds 300
    tests/integration/moved_deadlines_test.py build/asan/bin --minutes 10

Memory that is freed is overwritten (MALLOC_PERTURB_) where no sanitizer looks after it.
"""
import argparse
import os
import random
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time

CONNECTIONS, DEADLINE, PIECES = 6, 0.4, 20
MOVED_LEAST = 1025  # more than a channel keeps for later
LONG_WAIT = 60
HEADERS, DATA, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 1, 0, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def block(*fields):
    """A header block of literals that are in no table (RFC 7541 6.2.2)."""
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields)


def request(path, *more):
    return block((b":method", b"POST"), (b":scheme", b"http"), (b":path", path), (b":authority", b"a"),
                 (b"content-type", b"application/grpc"), (b"te", b"trailers"), *more)


class Peer:
    """A client's connection, in frames."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(LONG_WAIT)
        self.socket.connect(path)
        self.bytes = b""
        # Room for what the answers to 1,000 calls may be; the proxy's own settings are acknowledged unread.
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, ACK, 0))

    def send(self, data):
        self.socket.sendall(data)

    def ends(self):
        """The streams that have ended since the last time, after at least one read."""
        got = self.socket.recv(1 << 18)
        if not got:
            raise EOFError("the proxy closed the connection")
        self.bytes += got
        ended, at = [], 0
        while len(self.bytes) - at >= 9:
            length, flags, stream = struct.unpack_from(">IBI", self.bytes, at)
            kind, length = length & 255, length >> 8
            if len(self.bytes) - at < 9 + length:
                break
            if kind == GOAWAY:
                raise EOFError(f"GOAWAY: {self.bytes[at + 9:at + 9 + length]!r}")
            if kind == PING and not flags & ACK:
                self.send(frame(PING, ACK, 0, self.bytes[at + 9:at + 9 + length]))
            if kind == RST_STREAM or (kind in (HEADERS, DATA) and flags & END_STREAM):
                ended.append(stream)
            at += 9 + length
        self.bytes = self.bytes[at:]
        return ended

    def close(self):
        self.socket.close()


def keep_busy(path):
    """Bursts of calls that go nowhere and are long to read, for ever. A process of its own."""
    peer, idle = Peer(path), Peer(path)  # connections are spread: the second is the other worker's
    head = request(b"/no.Such/Call", *((b"x-%d" % i, b"v" * 20) for i in range(100)))
    stream = 1
    while True:
        if stream > 1_000_000_000:
            break
        peer.send(b"".join(frame(HEADERS, END_HEADERS | END_STREAM, stream + 2 * i, head) for i in range(100)))
        left = 100
        while left > 0:
            left -= len(peer.ends())
        stream += 200
    idle.close()


def play_round(path, calls, late_by):
    """One round; the connections in between are the other worker's."""
    peers = [Peer(path) for _ in range(2 * CONNECTIONS)]
    head = request(b"/sluice.echo.v1.Echo/BidiStream", (b"grpc-timeout", b"%dm" % (DEADLINE * 1000)))
    streams = range(1, 2 * calls, 2)
    opening = b"".join(frame(HEADERS, END_HEADERS, stream, head) for stream in streams)
    late = [frame(DATA, 0, stream, b"late") if stream % 4 == 1 else frame(RST_STREAM, 0, stream, struct.pack(">I", 8))
            for stream in streams]
    pieces = []  # each at its own time around the deadline
    for peer in peers[::2]:
        began = time.monotonic()
        peer.send(opening)
        for at in range(0, calls, calls // PIECES):
            pieces.append((began + DEADLINE + random.uniform(-0.005, late_by), peer, b"".join(late[at:at + calls // PIECES])))
    for when, peer, piece in sorted(pieces, key=lambda one: one[0]):
        time.sleep(max(0.0, when - time.monotonic()))
        peer.send(piece)
    for peer in peers[::2]:
        left = {stream for stream in streams if stream % 4 == 1}
        while left:
            left.difference_update(peer.ends())
    for peer in peers:
        peer.close()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def moved(port):
    """Calls that ran on another worker, by the daemon's metrics."""
    with socket.create_connection(("127.0.0.1", port), LONG_WAIT) as one:
        one.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        text = b""
        while part := one.recv(1 << 16):
            text += part
    return sum(int(float(value)) for value in re.findall(rb"^sluice_worker_hops_total\{[^}]*\} (\S+)", text, re.M))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--minutes", type=float, default=0)
    parser.add_argument("--calls", type=int, default=1000, help="of a connection; fewer where a build is too slow for them")
    parser.add_argument("--late", type=float, default=60, help="milliseconds behind the deadline in which clients write; more where the "
                        "build is slow to end so many calls")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
        echo = subprocess.Popen([f"{args.bin}/sluice-echo", "server", "--listen", f"unix:{folder}/echo.sock"],
                                stdout=subprocess.PIPE, text=True)
        assert "listening" in echo.stdout.readline()
        http = free_port()
        with open(f"{folder}/sluice.yaml", "w", encoding="utf-8") as file:
            file.write(f'workers: 2\nlisteners: [{{address: "unix:{folder}/listen.sock"}}]\nlog: {{level: error}}\n'
                       f'admin: {{grpc: "unix:{folder}/admin.sock", http: "127.0.0.1:{http}"}}\n'
                       f'clusters: [{{name: echo, endpoints: ["unix:{folder}/echo.sock"]}}]\n'
                       "routes: [{service: sluice.echo.v1.Echo, cluster: echo}]\n")
        with open(f"{folder}/log", "wb") as log:
            daemon = subprocess.Popen([f"{args.bin}/sluiced", "-c", f"{folder}/sluice.yaml"], stdout=log, stderr=log,
                                      env=os.environ | {"MALLOC_PERTURB_": os.environ.get("MALLOC_PERTURB_", "165")})
        end = time.monotonic() + LONG_WAIT
        while not os.path.exists(f"{folder}/listen.sock"):
            assert daemon.poll() is None and time.monotonic() < end, open(f"{folder}/log", encoding="utf-8").read()
            time.sleep(0.02)
        busy = os.fork()
        if busy == 0:
            try:
                keep_busy(f"{folder}/listen.sock")
            finally:
                os._exit(0)
        rounds, failure, count = 0, "", 0
        until = time.monotonic() + 60 * args.minutes
        try:
            while time.monotonic() < until if args.minutes else rounds < args.rounds:
                play_round(f"{folder}/listen.sock", args.calls, args.late / 1000)
                rounds += 1
                count = moved(http)
                if rounds % 10 == 0:
                    print(f"{rounds} rounds, {count} calls moved", flush=True)
        except (OSError, EOFError) as error:
            failure = f"after {rounds} rounds: {error}"
        os.kill(busy, signal.SIGKILL)
        os.waitpid(busy, 0)
        if daemon.poll() is None:
            daemon.send_signal(signal.SIGTERM)
        try:
            code = daemon.wait(LONG_WAIT)
        except subprocess.TimeoutExpired:
            daemon.kill()
            code = "none: it did not end"
        echo.kill()
        echo.wait()
        with open(f"{folder}/log", encoding="utf-8", errors="replace") as log:
            said = log.read()
    print(f"{rounds} rounds, {count} calls moved, the daemon's exit code {code}")
    if failure or code != 0 or "Sanitizer" in said:
        sys.exit(f"{failure}\n{said[-6000:]}")
    if count < MOVED_LEAST:
        sys.exit(f"only {count} calls moved: the worker was not busy, and nothing was shown")


if __name__ == "__main__":
    main()
