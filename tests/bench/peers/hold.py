# Memory rows: what sluiced keeps for a connection without calls, and for a call that waits for its message.
import contextlib
import re
import resource
import shutil
import socket
import struct
import subprocess
import time
from pathlib import Path

from bed import fill, names_for, render
from machine import locked, stop, wait_port
from report_table import Line
from scenarios import LISTEN_PORT, UP_PORTS, grpc_message

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SETTINGS, PING, HEADERS, DATA = 4, 6, 1, 0
LONG_WAIT = 60  # seconds until a run that hangs is given up


def frame(kind, flags, stream, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def request_block(call):
    """A gRPC request as literals without indexing (RFC 7541 6.2.2): it needs no table."""
    fields = {":method": "POST", ":scheme": "http", ":path": "/pkg.Service/Method", ":authority": "test", "te": "trailers",
              "content-type": "application/grpc", "user-agent": "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)",
              "x-key": "tenant-0042", "x-trace-bin": "AAECAwQFBgcICQoLDA0ODw", "x-request-id": f"{call:016x}"}
    return b"".join(bytes([0, len(k)]) + k.encode() + bytes([len(v)]) + v.encode() for k, v in fields.items())


class Client:
    """One connection; a source address of its own range, since one has only so many ports."""

    def __init__(self, number, port):
        self.socket = socket.socket()
        self.socket.settimeout(LONG_WAIT)
        self.socket.bind((f"127.2.{number // 20000}.1", 0))
        self.socket.connect(("127.0.0.1", port))
        self.unread = b""
        self.socket.sendall(PREFACE + frame(SETTINGS, 0, 0) + frame(SETTINGS, 1, 0))

    def frames_until(self, last):
        """Frames as (kind, flags, stream), up to one for which `last` holds."""
        out = []
        while True:
            while len(self.unread) >= 9:
                length = int.from_bytes(self.unread[:3], "big")
                if len(self.unread) < 9 + length:
                    break
                head = (self.unread[3], self.unread[4], struct.unpack(">I", self.unread[5:9])[0])
                self.unread = self.unread[9 + length:]
                out.append(head)
                if last(head):
                    return out
            data = self.socket.recv(65536)
            if not data:
                raise RuntimeError("the proxy closed the connection")
            self.unread += data

    def settled(self):
        """The proxy has handled all we have sent: it has answered a PING that came after it."""
        self.socket.sendall(frame(PING, 0, 0, b"12345678"))
        return self.frames_until(lambda f: f[0] == PING and f[1] & 1)


@contextlib.contextmanager
def daemon(peers, opts, files_max):
    """A backend and a warm sluiced of one worker; its pid."""
    run = opts.scratch / "hold"
    shutil.rmtree(run, ignore_errors=True)
    run.mkdir(parents=True)
    names = names_for(opts, run)
    names["CONF"] = render("sluice.yaml", names, run)
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (files_max, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    children = []
    try:
        children.append(subprocess.Popen([opts.programs / "backend", "--listen", ",".join(f"127.0.0.1:{p}" for p in UP_PORTS)],
                                         stderr=subprocess.DEVNULL))
        children.append(subprocess.Popen([fill(word, names) for word in peers["sluice"]["cmd"]], cwd=run, preexec_fn=limit,
                                         stdout=open(run / "log", "w"), stderr=subprocess.STDOUT))
        wait_port(LISTEN_PORT, children[1])
        subprocess.run([opts.programs / "load_client", "--connect", f"127.0.0.1:{LISTEN_PORT}", "-n", "2000", "-m", "100"], check=True,
                       stdout=subprocess.DEVNULL, timeout=LONG_WAIT)
        yield children[1].pid
    finally:
        for child in reversed(children):
            stop(child)
        shutil.rmtree(run, ignore_errors=True)


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


def files_limit():
    """Descriptors a process may have here; ours is raised to it."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def wanted(opts, most):
    return max(1000, int(most * min(1.0, opts.quick * 2)))


def idle_connections(peers, bursts, opts):
    files = files_limit()
    # The daemon keeps the last of its descriptors from clients (net::DescriptorReserve).
    n = min(wanted(opts, 100_000), files - min(files // 8, 1024) - 200)
    with locked(opts.lock), daemon(peers, opts, files) as pid:
        before, clients = resident(pid), []
        try:
            for i in range(n):
                clients.append(Client(i, LISTEN_PORT))
            for client in clients:
                client.settled()
            each = (resident(pid) - before) / n
        finally:
            for client in clients:
                client.socket.close()
    return [Line("idle connections", f"resident memory each, {n} open", each / 1024, limit=8, unit="KiB",
                 note="" if n >= 100_000 or opts.quick < 1 else f"the machine allows {files} descriptors")]


def open_streams(peers, bursts, opts):
    files = files_limit()
    streams = 1000
    connections = max(1, wanted(opts, 100_000) // streams)
    n, each = connections * streams, None
    with locked(opts.lock), daemon(peers, opts, files) as pid:
        clients = [Client(i, LISTEN_PORT) for i in range(connections)]
        for client in clients:
            client.settled()
        before, heard = resident(pid), []
        for client in clients:
            client.socket.sendall(b"".join(frame(HEADERS, 4, 2 * s + 1, request_block(s)) for s in range(streams)))
            heard += client.settled()
        time.sleep(0.2)  # the last connection's calls reach the backend
        each = (resident(pid) - before) / n
        refused = sum(f[0] in (HEADERS, 3) for f in heard)
        # They were open indeed: one connection's calls go on, and all end well.
        message = grpc_message(32)
        clients[-1].socket.sendall(b"".join(frame(DATA, 1, 2 * s + 1, message) for s in range(streams)))
        ended = set()
        clients[-1].frames_until(lambda f: (f[1] & 1 and f[0] in (HEADERS, DATA) and ended.add(f[2])) or len(ended) == streams)
        for client in clients:
            client.socket.close()
    if refused:
        return [Line("open streams", f"{refused} of {n} were refused", None, limit=2, unit="KiB")]
    return [Line("open streams", f"resident memory each, {n} open", each / 1024, limit=2, unit="KiB")]
