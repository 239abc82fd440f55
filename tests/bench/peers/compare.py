# All peers beside each other: CPU, rate and latency of each scenario as Markdown tables, or the system calls of a call.
import re
import signal
import statistics
import subprocess
import sys
import time

from bed import Bed
from machine import locked
from scenarios import SCENARIOS, calls_for

BASE, RELAY = "haproxy-h2", "haproxy-tcp"  # what the ratios refer to
CALLS = "read readv recvfrom recvmsg write writev sendto sendmsg splice epoll_wait epoll_pwait epoll_ctl futex nanosleep timerfd_settime".split()


def cells(peers, opts):
    """(peer, scenario) of what is asked for; a peer may be measured in some scenarios only."""
    for name in (s for s in SCENARIOS if re.search(opts.rows, s)):
        for peer, table in peers.items():
            if name in table.get("only", [name]) and not (peer == "direct" and SCENARIOS[name].get("workers")):
                yield peer, name


def tables(bursts, peers, opts):
    """Markdown, a table a scenario."""
    wanted = list(cells(peers, opts))
    for scenario in dict.fromkeys(s for _, s in wanted):
        bursts.measure([c for c in wanted if c[1] == scenario], SCENARIOS)
        print(f"### {scenario}\n\n| peer | CPU us/call | of HAProxy h2 | of mode tcp | calls/s | p50 us | p99 us | connections | runs |")
        print("|---|" + "---:|" * 8)
        for peer in (p for p, s in wanted if s == scenario):
            print("| " + " | ".join([peers[peer]["title"], *row(bursts, peer, scenario)]) + " |")
        print(flush=True)


def row(bursts, peer, scenario):
    records = bursts.usable(peer, scenario)
    if not records:
        return ["-"] * 8
    def number(x, digits=2):
        return "-" if x is None else f"{x:.0f}" if x >= 100 else f"{x:.{digits}f}"
    def median(key, of=peer):
        values = [r[key] for r in bursts.usable(of, scenario) if r.get(key) is not None]
        return statistics.median(values) if values else None
    spread = [r["cpu_us"] for r in records]
    mine = median("cpu_us")
    ratios = [number(mine / base) if peer != "direct" and (base := median("cpu_us", of)) else "-" for of in (BASE, RELAY)]
    mark = " ~" if any(r["disturbed"] for r in records) else ""
    return [f"{number(mine)} [{number(min(spread))}, {number(max(spread))}]{mark}", *ratios, number(median("rps")), number(median("p50"), 1),
            number(median("p99"), 1), number(median("up_conns"), 0), str(len(records))]


def system_calls(peers, opts):
    """Counted by perf; what perf costs is in no other figure."""
    for peer, scenario in cells(peers, opts):
        wanted = SCENARIOS[scenario]
        calls = int(calls_for(peers[peer], wanted) * 0.3) if wanted["n"] > 20000 else max(wanted["n"] // 4, 1)
        with locked(opts.lock), Bed(peer, peers[peer], wanted, opts) as bed:
            bed.load(max(calls // 10, 3 * wanted["c"] * wanted["m"]))
            out = bed.run / "perf.txt"
            events = ",".join(["raw_syscalls:sys_enter"] + [f"syscalls:sys_enter_{name}" for name in CALLS])
            perf = subprocess.Popen(["perf", "stat", "-x,", "-o", out, "-e", events, "-p", ",".join(map(str, bed.pids()))],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.5)  # until it counts
            result, _ = bed.load(calls)
            perf.send_signal(signal.SIGINT)
            perf.wait()
            counts = {f[2].split("sys_enter_")[-1].replace("raw_syscalls:sys_enter", "all"): float(f[0]) / calls
                      for f in (line.split(",") for line in out.read_text().splitlines()) if len(f) > 3 and f[0].isdigit()}
        most = "  ".join(f"{name} {n:.3f}" for name, n in sorted(counts.items(), key=lambda c: -c[1]) if name != "all" and n >= 0.001)
        print(f"{scenario:24} {peer:16} all {counts.get('all', 0):.3f}  {most}{'' if result['ok'] else '  FAILED'}", flush=True)
    if not list(cells(peers, opts)):
        sys.exit(f"no scenario matches {opts.rows}")
