#!/usr/bin/python3
# The memory limit under a burst of ready requests: memory and honest clients' waits, judged.
"""Runs sluiced with a small memory limit and lets ready_burst send 1,000 requests on each of many connections at once.

  tests/attack/ready_burst.py [--bin DIR] [--connections N] [--requests N] [--limit MIB] [--workers N] [--seconds N]

Judges the resident memory (base + limit + 24 KiB a connection + 8 MiB) and the p99 of honest calls (5 times that without
the burst). Exits with 1 where either is above its bar. Everything stays on loopback and ends by itself.
"""
import argparse
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import time

from beside import free_port, status

MIB = 1 << 20
A_CONNECTION = 24 * 1024
SLACK_MIB = 8
P99_FACTOR = 5


def wait_for(port, process):
    import socket
    for _ in range(500):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if process.poll() is not None:
            break
        time.sleep(0.02)
    raise SystemExit(f"ready_burst.py: nothing listens on port {port}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default="build/release/bin")
    parser.add_argument("--connections", type=int, default=2000)
    parser.add_argument("--requests", type=int, default=1000)
    parser.add_argument("--limit", type=int, default=16, help="MiB")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20)
    args = parser.parse_args()
    port, backend = free_port(), free_port()
    children = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "sluice.yaml").write_text(
            f'workers: {args.workers}\nlisteners: [{{address: "127.0.0.1:{port}"}}]\n'
            f'clusters: [{{name: c, endpoints: ["127.0.0.1:{backend}"]}}]\n'
            f'memory: {{buffered_bytes_max: {args.limit}MiB}}\nlog: {{level: error}}\n')
        try:
            children.append(subprocess.Popen([f"{args.bin}/sluice-echo", "server", "--listen", f"127.0.0.1:{backend}"],
                                             stdout=subprocess.DEVNULL))
            wait_for(backend, children[-1])
            proxy = subprocess.Popen([f"{args.bin}/sluiced", "-c", f"{folder}/sluice.yaml"])
            children.append(proxy)
            wait_for(port, proxy)
            load = subprocess.Popen([f"{args.bin}/ready_burst", str(port), str(args.connections), str(args.requests),
                                     str(args.seconds)], stdout=subprocess.PIPE, text=True)
            children.append(load)
            base, peak, lines, done = 0, 0, [], False

            def sample():
                nonlocal peak
                while not done:
                    peak = max(peak, status(proxy.pid, "VmRSS"))
                    time.sleep(0.01)

            sampler = threading.Thread(target=sample)
            for line in load.stdout:
                print(line, end="")
                lines.append(line)
                if line.startswith("alone"):
                    base = status(proxy.pid, "VmRSS")
                    sampler.start()
                if line.startswith("connected"):
                    print(f"resident: {base:.1f} MiB before, {status(proxy.pid, 'VmRSS'):.1f} MiB with the connections")
            done = True
            sampler.join()
        finally:
            for child in reversed(children):
                child.terminate()
                child.wait()
    bar = base + args.limit + args.connections * A_CONNECTION / MIB + SLACK_MIB
    p99 = {m[1]: float(m[2]) for m in (re.match(r"(\w+): .* p99 ([\d.]+)", line) for line in lines) if m}
    print(f"resident: {peak:.1f} MiB at most, bar {bar:.1f}; p99 {p99['alone']} -> {p99['beside']} ms, "
          f"bar {P99_FACTOR * p99['alone']:.2f}")
    return 0 if peak <= bar and p99["beside"] <= P99_FACTOR * p99["alone"] else 1


if __name__ == "__main__":
    sys.exit(main())
