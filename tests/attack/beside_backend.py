#!/usr/bin/python3
# Honest calls to one backend beside another that floods the proxy, measured.
"""Lets a backend flood Sluice and measures what calls to another backend get meanwhile.

  tests/attack/beside_backend.py [--bin DIR] [--floods REGEX] [--seconds N] [--out FILE]

As beside.py: the proxy has one worker and core 0, all else shares core 1: the bad backend, which floods at full speed, a client that
calls it as fast as it can (100 at a time), a good backend, a client that makes as many calls to that as it can (h2load, 1
connection x 100), and one that makes 300 a second over gRPC and looks at every answer. The yardstick is the same where the other
backend just answers.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

from beside import (OTHERS_CORE, PINNED, PIPES, PROXY_CORE, UNARY, careful_client, cpu, fast_client, free_port, running,
                    status)


def measure(args, flood, folder):
    port, good, bad = free_port(), free_port(), free_port()
    (folder / "sluice.yaml").write_text(
        f'workers: 1\nlisteners: [{{address: "127.0.0.1:{port}"}}]\n'
        f'clusters: [{{name: good, endpoints: ["127.0.0.1:{good}"]}}, {{name: bad, endpoints: ["127.0.0.1:{bad}"]}}]\n'
        f'routes: [{{authority: bad, cluster: bad}}, {{name: rest, cluster: good}}]\n'
        f'admin: {{grpc: "unix:{folder}/admin.sock"}}\nlog: {{level: error}}\n')
    backend = subprocess.Popen(PINNED + [f"{args.bin}/h2_bad_backend", flood, str(bad), "--seconds", str(args.seconds + 4)], **PIPES)
    with running([f"{args.bin}/sluice-echo", "server", "--listen", f"127.0.0.1:{good}"], good, OTHERS_CORE), \
            running([f"{args.bin}/sluiced", "-c", f"{folder}/sluice.yaml"], port, PROXY_CORE) as proxy:
        careful = careful_client(args, port)
        caller = subprocess.Popen(
            PINNED + [f"{args.bin}/h2_attack", "calls", str(port), "--seconds", str(args.seconds + 2.5), "--path", UNARY,
                      "--authority", "bad", "--connections", "1"], **PIPES)
        used, began = cpu(proxy.pid), time.monotonic()
        rate, fast_failed = fast_client(args, port, folder)
        used = (cpu(proxy.pid) - used) / (time.monotonic() - began)
        tally = json.loads(careful.communicate(timeout=60)[0])
        said = caller.communicate(timeout=60)[0].strip()
        flooded = backend.communicate(timeout=60)[0].strip()
        return {
            "flood": flood, "calls_a_second": rate,
            "failed": fast_failed + tally["failures"] if fast_failed >= 0 else -1,
            "resident_mib": round(status(proxy.pid, "VmHWM"), 1), "proxy_cpu": round(used, 2), "alive": proxy.poll() is None,
            "caller": said, "backend": flooded,
        }


def main():
    here = pathlib.Path(__file__).resolve().parents[2]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", default=str(here / "build/release/bin"))
    parser.add_argument("--floods", default=".")
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--out")
    args = parser.parse_args()
    listing = subprocess.run([f"{args.bin}/h2_bad_backend"], capture_output=True, text=True).stderr
    floods = [name for name in re.findall(r"^  ([a-z0-9-]+) ", listing.split("floods:")[1], re.M)
              if name != "answers" and re.search(args.floods, name)]
    yardsticks, results = [], []
    with tempfile.TemporaryDirectory(prefix="beside.") as scratch:
        folder = pathlib.Path(scratch)
        (folder / "body").write_bytes(b"\0\0\0\0\0")  # a gRPC message of no bytes
        for index, flood in enumerate(floods):
            for kind in ["answers", flood] if index % 6 == 0 else [flood]:
                result = measure(args, kind, folder)
                (yardsticks if kind == "answers" else results).append(result)
                if args.out:
                    with open(args.out, "a", encoding="utf-8") as out:
                        out.write(json.dumps(result) + "\n")
                print(json.dumps(result), file=sys.stderr)
    base = statistics.median(one["calls_a_second"] for one in yardsticks)
    print(f"| backend | share |\n|---|---|\n| (the yardstick) | {base:.0f}/s |")
    for one in results:
        print(f"| `{one['flood']}` | {one['calls_a_second'] / max(base, 1):.2f}, {one['resident_mib']:.0f} MiB" +
              (f", {one['failed']} failed" if one["failed"] else "") + ("" if one["alive"] else ", died") + " |")


if __name__ == "__main__":
    main()
