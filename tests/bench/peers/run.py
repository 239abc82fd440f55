# The driver behind run.sh: the bars of rows.py, or one of the other commands, in a network namespace of its own.
import argparse
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def options():
    ap = argparse.ArgumentParser(prog="run.sh", description="Measures Sluice beside its peers; see run.sh.")
    ap.add_argument("command", nargs="?", default="bars", choices=["bars", "compare", "check", "syscalls", "list"])
    ap.add_argument("--build", required=True, type=Path, help="a release build with sluiced and bench_peers")
    ap.add_argument("--proto", required=True)
    ap.add_argument("--rows", default="", help="regular expression on the names of rows or scenarios")
    ap.add_argument("--peers", help="comma-separated names of peers.toml (compare, check, syscalls)")
    ap.add_argument("--reps", type=int)
    ap.add_argument("--quick", type=float, nargs="?", const=0.1, default=1.0)
    ap.add_argument("--lock", default=os.environ.get("BENCH_LOCK", ""))
    ap.add_argument("--out", default="", help="append every burst to this file, one JSON object a line")
    ap.add_argument("--attempts", type=int, default=5, help="bursts until one is not disturbed")
    ap.add_argument("--steal", type=float, default=0.04, help="share of a core that the hypervisor may take from a burst")
    ap.add_argument("--calm", type=float, default=10, help="seconds to wait for a quiet machine before each")
    opts = ap.parse_args()
    if opts.reps is None:
        opts.reps = 5 if opts.quick == 1.0 else 2
    opts.programs, opts.sluiced, opts.scratch = opts.build / "bin" / "peers", opts.build / "bin" / "sluiced", opts.build / "peers"
    return opts


def own_namespace():
    """Ports, addresses and congestion control of our own: nothing outside sees this run, nor it them. reno: without loss it is as
    good as any, and bbr would pace by timers."""
    if os.environ.get("BENCH_NETNS") != "1":
        os.environ["BENCH_NETNS"] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable] + sys.argv)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("10000 64000")


def bars(peers, opts):
    import report_table
    import rows
    from bursts import Bursts
    from scenarios import SCENARIOS
    wanted = [row for row in rows.ROWS if re.search(opts.rows, row.name)]
    special = [name for name in rows.SPECIAL if re.search(opts.rows, name)]
    bursts = Bursts(peers, opts)
    table = report_table.Table()
    started = time.time()
    # Scenario by scenario, so that what is compared is measured next to each other.
    for name in dict.fromkeys(name for row in wanted for _, name in row.cells()):
        bursts.measure([c for row in wanted for c in row.cells() if c[1] == name], SCENARIOS)
    for row in wanted:
        table.add(row.evaluate(bursts))
    for name in special:
        for line in rows.SPECIAL[name](peers, bursts, opts):
            table.add(line)
    print(table.render())
    print(f"\n{time.time() - started:.0f} s; {opts.reps} runs each, medians. ~ : the machine was never quiet enough.")
    return table.complete


def main():
    opts = options()
    sys.path.insert(0, str(HERE))
    peers = tomllib.loads((HERE / "peers.toml").read_text())["peer"]
    if opts.command == "list":
        import rows
        from scenarios import SCENARIOS
        for title, names in (("rows", [*dict.fromkeys(r.name for r in rows.ROWS), *rows.SPECIAL]), ("scenarios", SCENARIOS), ("peers", peers)):
            print(f"{title}:", *names, sep="\n  ")
        return 0
    own_namespace()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    if opts.command == "bars":
        return 0 if bars(peers, opts) else 1
    if opts.peers:
        peers = {name: peers[name] for name in opts.peers.split(",")}
    import check
    import compare
    from bursts import Bursts
    if opts.command == "check":
        return 0 if check.run(peers, opts) else 1
    if opts.command == "syscalls":
        compare.system_calls(peers, opts)
    else:
        compare.tables(Bursts(peers, opts), peers, opts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
