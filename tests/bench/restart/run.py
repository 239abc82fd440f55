#!/usr/bin/env python3
# What clients notice when the process of a proxy is replaced by a new one, again and again: the driver. README.md; run.sh runs it.
import argparse
import bisect
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import report
from processes import adopt_orphans, free_ports
from proxies import PROXIES

HERE = Path(__file__).resolve().parent
# client -> its share of the calls and of the streams, if nothing else is said
CALL_SHARES = {"c++": 0.40, "js": 0.35, "python": 0.25}
STREAM_SHARES = {"c++": 0.5, "js": 0.3, "python": 0.2}
READY_SECONDS = 40
SETTLE_SECONDS = 12  # after the last restart: longer than a call or an echo may take
BACKENDS = 2
FAILURES_MAX = 4  # of restarts in a row


class Helper:
    """A backend or a client: answers on lines (src/client.cc)."""

    def __init__(self, name, command, scratch, **env):
        self.name, self.lines = name, []
        self.error = scratch / f"{name}.err"
        with open(self.error, "wb") as error:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                            stderr=error, text=True, env=os.environ | env)

    def wait_line(self, seconds):
        """The next line it prints, or an error after `seconds`."""
        found = []
        reader = threading.Thread(target=lambda: found.append(self.process.stdout.readline()), daemon=True)
        reader.start()
        reader.join(seconds)
        if not found or not found[0]:
            raise RuntimeError(f"{self.name}: no line in {seconds} s: {self.error.read_text(errors='replace')[-1000:]}")
        return found[0].strip()

    def go(self):
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def close(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()

    def end(self):
        self.close()
        try:
            self.process.wait(2)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class Bed:
    """The backends, the proxy and the clients of one run."""

    def __init__(self, name, options):
        self.options, self.helpers, self.proxy = options, [], None
        self.scratch = Path(tempfile.mkdtemp(prefix=f"restart-{name}."))
        self.name = name

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            if self.proxy:
                print(self.proxy.log(), file=sys.stderr)
            self.__exit__()
            raise
        return self

    def begin(self):
        options, programs = self.options, self.options.programs
        command = [programs / "restart_backend", "--hold-ms", options.hold_ms, "--limit", options.limit]
        self.backends = [self.helper(f"backend-{i}", command) for i in range(BACKENDS)]
        ports = [int(backend.wait_line(10).split()[1]) for backend in self.backends]
        self.proxy = PROXIES[self.name](options, self.scratch, free_ports(1)[0], ports)
        self.proxy.start()
        target = ["--target", f"127.0.0.1:{self.proxy.port}"]
        connects = [sys.executable, HERE / "connects.py", *target, "--rate", options.connects]
        self.clients = [self.helper("connects", connects)]
        programs = {"c++": [programs / "restart_client"], "python": [sys.executable, HERE / "client.py"],
                    "js": ["node", HERE / "client.js"]}
        calls = sum(options.clients.values())
        streams = sum(STREAM_SHARES[name] for name in options.clients)
        for name, share in options.clients.items():
            self.clients.append(self.helper(name, [
                *programs[name], *target, "--rate", options.rate * share / calls, "--channels", options.channels,
                "--streams", round(options.streams * STREAM_SHARES[name] / streams), "--stream-seconds", options.stream_seconds]))
        for client in self.clients:
            client.wait_line(READY_SECONDS)

    def helper(self, name, command):
        self.helpers.append(Helper(name, command, self.scratch, NODE_PATH=str(self.options.modules)))
        return self.helpers[-1]

    def results(self):
        """What the clients and the backends counted; ends them."""
        out = []
        for group in (self.clients, self.backends):
            for helper in group:
                helper.close()
            for helper in group:
                out.append(json.loads(helper.wait_line(60)) | dict(helper=helper.name))
        return out

    def __exit__(self, *_):
        for helper in self.helpers:
            helper.end()
        if self.proxy:
            self.proxy.stop()
        if self.options.keep:
            print(f"{self.name}: logs are in {self.scratch}", file=sys.stderr)
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)


def wait_ready(proxy, seconds):
    """Until the proxy obeys another restart. Milliseconds; None: not within `seconds`."""
    begun = time.monotonic()
    while not proxy.ready_for_next():
        if time.monotonic() - begun > seconds:
            return None
        time.sleep(0.05)
    return (time.monotonic() - begun) * 1e3


def restarts(proxy, options, tell):
    """Makes them: one dict each, the most old processes there were, and why it ended early."""
    done, old_max = [], 0
    for number in range(1, options.restarts + 1):
        waited = wait_ready(proxy, options.patience)
        if waited is None:
            return done, old_max, f"not ready for restart {number} after {options.patience:.0f} s"
        done.append(dict(at=time.time(), waited_ms=waited))
        begun = time.monotonic()
        try:
            done[-1]["serves_ms"] = proxy.restart() * 1e3
        except (OSError, RuntimeError, subprocess.SubprocessError) as error:
            done[-1]["error"] = f"{error} {getattr(error, 'stderr', None) or ''}".strip()
            tell(f"{proxy.name}: restart {number}: {done[-1]['error']}")
        if sum("error" in one for one in done[-FAILURES_MAX:]) == FAILURES_MAX:
            return done, old_max, f"{FAILURES_MAX} restarts in a row have failed\n{proxy.log()}"
        while time.monotonic() < begun + options.interval:
            old_max = max(old_max, proxy.old())
            time.sleep(min(0.2, max(0, begun + options.interval - time.monotonic())))
        if number % 20 == 0:
            tell(f"{proxy.name}: {number} restarts")
    return done, old_max, None


def measure(name, options, tell):
    with Bed(name, options) as bed:
        for helper in bed.backends + bed.clients:
            helper.go()
        begun, times = time.monotonic(), processor_times()
        done, old_max, stopped = restarts(bed.proxy, options, tell)
        time.sleep(SETTLE_SECONDS)
        seconds, old_end = time.monotonic() - begun, bed.proxy.old()
        passed, idle, taken = (now - before for now, before in zip(processor_times(), times))
        results = bed.results()
        clients = {r["client"]: r for r in results if "client" in r}
        at = [one["at"] for one in done]
        hit = {bisect.bisect(at, event[0]) for client in clients.values() for event in client["events"]}
        return dict(proxy=name, title=bed.proxy.title, limits=bed.proxy.limits, limit=options.limit, rate=options.rate,
                    interval=options.interval, streams=options.streams, stream_seconds=options.stream_seconds,
                    workers=options.workers, seconds=seconds, shares=options.clients,
                    processors=dict(idle=idle / passed, taken=taken / passed), restarts=done, stopped=stopped, old_max=old_max, old_end=old_end,
                    restarts_noticed=len(hit - {0}), clients=clients,
                    backends=[r for r in results if "client" not in r], when=time.strftime("%FT%TZ", time.gmtime()))


def shares(text):
    """client -> share of the calls, of "c++=0.8,js=0.2" or "c++,js"."""
    out = {}
    for word in text.split(","):
        name, _, share = word.partition("=")
        if name not in CALL_SHARES:
            raise argparse.ArgumentTypeError(f"{name} is not one of {', '.join(CALL_SHARES)}")
        out[name] = float(share or CALL_SHARES[name])
        if not 0 < out[name] < float("inf"):
            raise argparse.ArgumentTypeError(f"{word}: a share is above 0")
    return out


def processor_times():
    """Of all processors since the start of the machine, in ticks: all, idle, and taken by the host for others."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return sum(ticks), ticks[3] + ticks[4], ticks[7]


def arguments():
    parser = argparse.ArgumentParser(description="What clients notice of restarts of a proxy; README.md",
                                     formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--proxies", default="sluiced,haproxy,nginx,nghttpx", help=f"some of {','.join(PROXIES)}")
    parser.add_argument("--restarts", type=int, default=20)
    parser.add_argument("--interval", type=float, default=3, help="seconds from one restart to the next, at least")
    parser.add_argument("--rate", type=float, default=2000, help="unary calls a second, of all clients")
    parser.add_argument("--streams", type=int, default=100, help="streams open at once, of all clients")
    parser.add_argument("--stream-seconds", type=float, default=15, help="how long a stream lives before its client ends it")
    parser.add_argument("--channels", type=int, default=4, help="connections of each client")
    parser.add_argument("--connects", type=float, default=50, help="raw connections a second")
    parser.add_argument("--clients", default=",".join(f"{name}={share:g}" for name, share in CALL_SHARES.items()), type=shares,
                        help="the clients, each with its share of the calls")
    parser.add_argument("--limit", type=int, default=8, help="unary calls that a backend may have at once")
    parser.add_argument("--hold-ms", type=int, default=5, help="how long a backend takes for one")
    parser.add_argument("--workers", type=int, default=2, help="threads or processes of a proxy that carry calls")
    parser.add_argument("--patience", type=float, default=120, help="seconds to wait for a proxy that cannot restart yet")
    parser.add_argument("--build", type=Path, required=True, help="a build of Sluice: its bin has sluiced and sluicectl")
    parser.add_argument("--programs", type=Path, help="the folder of restart_backend and restart_client (BUILD/bin)")
    parser.add_argument("--modules", type=Path, required=True, help="node_modules with @grpc/grpc-js")
    parser.add_argument("--json", type=Path, help="append each run's result as a line")
    parser.add_argument("--keep", action="store_true", help="keep the logs and configurations")
    options = parser.parse_args()
    options.programs = options.programs or options.build / "bin"
    for name in options.proxies.split(","):
        if name not in PROXIES:
            parser.error(f"--proxies: {name} is not one of {', '.join(PROXIES)}")
    return options


def main():
    options = arguments()
    adopt_orphans()
    records, failed = [], False
    for name in options.proxies.split(","):
        try:
            records.append(measure(name, options, lambda line: print(line, file=sys.stderr, flush=True)))
        except RuntimeError as error:
            print(f"{name}: {error}", file=sys.stderr)
            failed = True
            continue
        if records[-1]["stopped"]:
            print(f"{name}: {records[-1]['stopped']}", file=sys.stderr)
            failed = True
        if options.json:
            with open(options.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(records[-1]) + "\n")
    print(report.table(records))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
