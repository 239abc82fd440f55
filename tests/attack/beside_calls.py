#!/usr/bin/python3
# Honest calls beside calls that break a backend's connection, counted: Sluice, HAProxy, nginx, nghttpx and Envoy.
"""Sends calls that make a backend end its connection, a few a second, and counts the honest calls that fail beside them.

  tests/attack/beside_calls.py [--bin DIR] [--servers NAMES] [--envoy FILE] [--rows REGEX] [--seconds N] [--out FILE]

Rows: `poison`: calls on which a backend (h2_bad_backend poison) closes its connection. `bin-...`: metadata of gRPC clients whose
name ends in -bin and whose value is no base64, to a backend of gRPC C++ (sluice-echo), which ends the connection for some.
Each row: 500 honest calls a second on one connection, each answer looked at, beside 10 bad calls a second on another. A honest
call is good where its answer is headers, a message and trailers. Not a test; as beside.py, whose servers these are.
"""
import argparse
import json
import pathlib
import re
import socket
import struct
import sys
import tempfile
import threading
import time

from beside import OTHERS_CORE, PROXY_CORE, SERVERS, UNARY, free_port, installed, make_certificate, running, status

HONEST_RATE, BAD_RATE = 500, 10
HEADERS, DATA, RST_STREAM, SETTINGS, PING, GOAWAY, WINDOW_UPDATE = 1, 0, 3, 4, 6, 7, 8
END_STREAM, END_HEADERS, ACK = 1, 4, 1
POISON = b"\0\0\0\0\x06POISON"
EMPTY = b"\0\0\0\0\0"
# Row -> the backend's program, the bad calls' metadata, their body.
ROWS = {
    "poison": ("h2_bad_backend", (), POISON),
    "bin-percent": ("sluice-echo", ((b"x-bin", b"%%%"),), EMPTY),
    "bin-length": ("sluice-echo", ((b"x-bin", b"YR"),), EMPTY),
    "bin-url": ("sluice-echo", ((b"x-bin", b"_-8"),), EMPTY),
    "bin-padding": ("sluice-echo", ((b"x-bin", b"Y==="),), EMPTY),
    "bin-list": ("sluice-echo", ((b"x-bin", b"YWJj,ZGVm"),), EMPTY),  # legal: two values in one field
}


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">IBI", len(payload) << 8 | kind, flags, stream) + payload


def request(*more):
    """A header block of literals that are in no table (RFC 7541 6.2.2)."""
    fields = ((b":method", b"POST"), (b":scheme", b"http"), (b":path", UNARY.encode()), (b":authority", b"localhost"),
              (b"content-type", b"application/grpc"), (b"te", b"trailers")) + more
    return b"".join(b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value for name, value in fields)


class Caller(threading.Thread):
    """Calls at a rate, on one connection that is made again when it ends. What became of each: good, or not."""

    def __init__(self, port, rate, block, body, seconds):
        super().__init__()
        self.port, self.rate, self.block, self.body, self.seconds = port, rate, block, body, seconds
        self.sent = self.good = self.failed = self.connections = 0
        self.socket, self.bytes, self.next_id = None, b"", 1
        self.open = {}  # stream -> frames so far

    def connect(self):
        self.failed += len(self.open)
        self.open, self.bytes, self.next_id = {}, b"", 1
        self.socket = socket.create_connection(("127.0.0.1", self.port), 5)
        self.socket.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        self.connections += 1

    def run(self):
        began, due = time.monotonic(), 0
        while True:
            now = time.monotonic() - began
            if now > self.seconds and (not self.open or now > self.seconds + 3):
                break
            try:
                if self.socket is None:
                    self.connect()
                if now <= self.seconds:
                    due = self.send_due(now, due)
                self.read(min(0.02, 1 / self.rate))
            except OSError:
                self.socket = None
        self.failed += len(self.open)

    def send_due(self, now, due):
        out = b""
        while due < now * self.rate:
            out += frame(HEADERS, END_HEADERS, self.next_id, self.block) + frame(DATA, END_STREAM, self.next_id, self.body)
            self.open[self.next_id] = ""
            self.next_id += 2
            self.sent += 1
            due += 1
        self.socket.sendall(out)
        return due

    def read(self, patience):
        self.socket.settimeout(patience)
        try:
            got = self.socket.recv(1 << 16)
        except TimeoutError:
            return
        self.socket.settimeout(5)
        if not got:
            raise OSError("closed")
        self.bytes += got
        while len(self.bytes) >= 9:
            length, flags, stream = struct.unpack_from(">IBI", self.bytes)
            kind, length = length & 255, length >> 8
            if len(self.bytes) < 9 + length:
                return
            payload, self.bytes = self.bytes[9:9 + length], self.bytes[9 + length:]
            self.heard(kind, flags, stream, payload)

    def heard(self, kind, flags, stream, payload):
        if kind == SETTINGS and not flags & ACK:
            self.socket.sendall(frame(SETTINGS, ACK, 0))
        if kind == PING and not flags & ACK:
            self.socket.sendall(frame(PING, ACK, 0, payload))
        if kind == DATA and payload:
            self.socket.sendall(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", len(payload))))
        if kind == GOAWAY:
            raise OSError("told to go")
        if stream not in self.open or kind not in (HEADERS, DATA, RST_STREAM):
            return
        if kind != DATA or payload:
            self.open[stream] += {HEADERS: "h", DATA: "d", RST_STREAM: "r"}[kind]
        if kind == RST_STREAM or flags & END_STREAM:
            good = re.fullmatch("hd+h", self.open.pop(stream)) is not None
            self.good += good
            self.failed += not good


def measure(args, name, row, folder):
    program, fields, body = ROWS[row]
    port, backend, tls = free_port(), free_port(), free_port()
    if program == "h2_bad_backend":
        command = [f"{args.bin}/h2_bad_backend", "poison", str(backend), "--seconds", str(args.seconds + 8)]
    else:
        command = [f"{args.bin}/sluice-echo", "server", "--listen", f"127.0.0.1:{backend}"]
    with running(command, backend, OTHERS_CORE), \
            running(SERVERS[name](args, folder, port, backend, tls), port, PROXY_CORE) as proxy:
        honest = Caller(port, HONEST_RATE, request(), EMPTY, args.seconds)
        bad = Caller(port, BAD_RATE, request(*fields), body, args.seconds)
        for caller in (honest, bad):
            caller.start()
        for caller in (honest, bad):
            caller.join()
        return {"server": name, "row": row, "honest": honest.sent, "failed": honest.failed, "connections": honest.connections,
                "bad": bad.sent, "bad_good": bad.good, "alive": proxy.poll() is None, "resident_mib": round(status(proxy.pid, "VmHWM"), 1)}


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(here / "build/release/bin"))
    parser.add_argument("--servers")
    parser.add_argument("--envoy", default="envoy")
    parser.add_argument("--rows", default=".")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--out")
    args = parser.parse_args()
    servers = args.servers.split(",") if args.servers else installed(args)
    results = {}
    with tempfile.TemporaryDirectory(prefix="beside.") as scratch:
        folder = pathlib.Path(scratch)
        make_certificate(folder)
        for row in (row for row in ROWS if re.search(args.rows, row)):
            for name in servers:
                result = results[row, name] = measure(args, name, row, folder)
                if args.out:
                    with open(args.out, "a", encoding="utf-8") as out:
                        out.write(json.dumps(result) + "\n")
                print(json.dumps(result), file=sys.stderr)
    print("| bad calls, 10/s | " + " | ".join(servers) + " |\n|---|" + "---|" * len(servers))
    for row in dict.fromkeys(row for row, _ in results):
        cells = [f"{100 * results[row, name]['failed'] / max(results[row, name]['honest'], 1):.1f}%" +
                 ("" if results[row, name]["alive"] else ", died") for name in servers]
        print(f"| `{row}` | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
