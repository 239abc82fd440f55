#!/usr/bin/env python3
# Resident memory of sluiced for each idle HTTP/2 connection that has made calls.
"""Resident memory of sluiced for each idle HTTP/2 connection that has made calls.

  python3 tests/bench/idle_memory.py --build build/release [--connections 10000] [--calls 1]

Starts sluice-echo and sluiced (one worker), opens the connections, makes the calls of each one after the other with the
metadata of a gRPC client, waits until the daemon is quiet and reads its Rss and Pss. The kernel's socket buffers are not
counted: an idle socket holds none. Prints bytes for each connection; the promise is 8 KiB (docs/architecture.md).
"""
import argparse, os, socket, subprocess, sys, tempfile, time

from hold import DATA, HEADERS, Client, files_limit, frame

END_HEADERS, END_STREAM, RST_STREAM, GOAWAY = 4, 1, 3, 7


def literal(name, value, indexed):
    first = b"\x40" if indexed else b"\x00"
    return first + bytes([len(name)]) + name.encode() + bytes([len(value)]) + value.encode()


def request(stream, number, call, index_ids):
    """A unary Echo call with an empty message, spelled as grpc-core spells it: what repeats goes to the table."""
    fields = [(":method", "POST"), (":scheme", "http"), (":path", "/sluice.echo.v1.Echo/Unary"), (":authority", "localhost"),
              ("te", "trailers"), ("content-type", "application/grpc"),
              ("user-agent", "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"), ("grpc-accept-encoding", "identity, deflate, gzip")]
    block = b""
    for name, value in fields:
        block += literal(name, value, call == 0)
    block += literal("x-request-id", f"{number:08x}{call:08x}", index_ids)
    return frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, b"\0\0\0\0\0")


def ends(stream):
    """Whether a frame (kind, flags, stream) ends the stream, well or not."""
    return lambda head: head[0] in (RST_STREAM, GOAWAY) or (head[2] == stream and head[1] & END_STREAM and head[0] in (DATA, HEADERS))


def memory(pid):
    values = {}
    with open(f"/proc/{pid}/smaps_rollup") as f:
        for line in f:
            words = line.split()
            if words[0] in ("Rss:", "Pss:", "Anonymous:"):
                values[words[0][:-1]] = int(words[1]) * 1024
    return values


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port):
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("not listening in time")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--connections", type=int, default=10000)
    parser.add_argument("--calls", type=int, default=1)
    parser.add_argument("--index-ids", action="store_true", help="each call's id goes to the header table too, until it is full")
    parser.add_argument("--max", type=int, help="exit with 1 if a connection takes more bytes than this")
    options = parser.parse_args()
    hard = files_limit()
    if options.connections > hard - 200:
        sys.exit(f"this process may have {hard} descriptors")

    folder = tempfile.mkdtemp()
    backend, listen = free_port(), free_port()
    config = os.path.join(folder, "sluice.yaml")
    with open(config, "w") as f:
        f.write(f"workers: 1\nlisteners: [{{address: '127.0.0.1:{listen}'}}]\n"
                f"clusters: [{{name: c, endpoints: ['127.0.0.1:{backend}']}}]\nroutes: [{{cluster: c}}]\n"
                f"admin: {{grpc: 'unix:{folder}/admin.sock'}}\n")
    echo = subprocess.Popen([os.path.join(options.build, "bin/sluice-echo"), "server", "--listen", f"127.0.0.1:{backend}"],
                            stdout=subprocess.DEVNULL)
    wait_for(backend)
    daemon = subprocess.Popen([os.path.join(options.build, "bin/sluiced"), "-c", config], stderr=subprocess.DEVNULL)
    try:
        wait_for(listen)

        def open_one(number):
            client = Client(number, listen)
            for call in range(options.calls):
                stream = 2 * call + 1
                client.socket.sendall(request(stream, number, call, options.index_ids))
                if client.frames_until(ends(stream))[-1][0] in (RST_STREAM, GOAWAY):
                    sys.exit("a call failed")
            return client

        warm = [open_one(i) for i in range(100)]  # pools, tables and the allocator's first pages
        time.sleep(0.5)
        before = memory(daemon.pid)
        clients = [open_one(i) for i in range(options.connections)]
        time.sleep(1)
        after = memory(daemon.pid)
        each = {key: (after[key] - before[key]) / options.connections for key in after}
        print(f"{options.connections} idle connections after {options.calls} calls each: "
              + ", ".join(f"{key} {value:.0f} bytes" for key, value in each.items()) + " for each connection")
        for client in warm + clients:
            client.socket.close()
        time.sleep(1)
        left = (memory(daemon.pid)["Rss"] - before["Rss"]) / 1024
        print(f"all closed: {left:.0f} KiB more than before")
        if options.max is not None and each["Rss"] > options.max:
            sys.exit(1)
    finally:
        for process in (daemon, echo):
            process.terminate()
            process.wait()


main()
