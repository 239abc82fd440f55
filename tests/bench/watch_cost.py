#!/usr/bin/env python3
# CPU time of sluiced while it watches the health of many endpoints and has no calls.
"""CPU time of sluiced while it watches the health of many endpoints and has no calls.

  python3 tests/bench/watch_cost.py --build build/release [--endpoints 1000] [--seconds 30]

Starts one gRPC server that is all the endpoints, at addresses of 127/8 (the fault matrix's backend: gRPC C++'s own health
service), and sluiced with health: {mode: watch}. Waits until each endpoint says SERVING, and prints the share of a core
that the daemon takes from then on, how many Watch streams it has begun, and the same without health checks.
"""
import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
import time

WAIT = 60


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def address(number):
    return f"127.1.{number // 250}.{number % 250 + 1}"


# How many endpoints say SERVING, and what sluicectl said.
def serving(options, folder):
    said = subprocess.run([f"{options.build}/bin/sluicectl", "--address", f"unix:{folder}/admin.sock", "endpoints", "c", "--why"],
                          capture_output=True, text=True, check=False)
    return len(re.findall(r"\bSERVING\b", said.stdout)), said


def measure(options, port, mode):
    with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
        config = f"{folder}/sluice.yaml"
        endpoints = ", ".join(f"'{address(i)}:{port}'" for i in range(options.endpoints))
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"listeners: [{{address: '127.0.0.1:0'}}]\nroutes: [{{cluster: c}}]\nadmin: {{grpc: 'unix:{folder}/admin.sock'}}\n"
                       f"clusters: [{{name: c, health: {{mode: {mode}}}, endpoints: [{endpoints}]}}]\n")
        with open(f"{folder}/log", "wb") as log:
            daemon = subprocess.Popen([f"{options.build}/bin/sluiced", "-c", config], stderr=log)
        try:
            begun = time.monotonic()
            while mode == "watch":
                count, said = serving(options, folder)
                if count >= options.endpoints:
                    print(f"{count} endpoints say SERVING after {time.monotonic() - begun:.1f} s")
                    break
                if time.monotonic() - begun > WAIT:
                    sys.exit(f"{count} of {options.endpoints} endpoints say SERVING after {WAIT} s: {said.stdout[-500:]}{said.stderr[-500:]}")
                time.sleep(0.5)
            time.sleep(12)  # without calls the judge's passes become rare after 10 s
            before = cpu_seconds(daemon.pid)
            time.sleep(options.seconds)
            return (cpu_seconds(daemon.pid) - before) / options.seconds
        finally:
            daemon.terminate()
            daemon.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build/release")
    parser.add_argument("--endpoints", type=int, default=1000)
    parser.add_argument("--seconds", type=int, default=30)
    options = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with tempfile.TemporaryDirectory(prefix="sluice.") as folder:
        server = subprocess.Popen([f"{options.build}/bin/matrix/matrix_backend", "--name", "all", "--listen", "0.0.0.0:0",
                                   "--executions", f"{folder}/executions"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            for mode in ("off", "watch"):
                print(f"{mode}: {100 * measure(options, port, mode):.2f}% of a core", flush=True)
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
