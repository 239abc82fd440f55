# The driver behind run.sh: measures the rows of rows.py with the harness' own functions and prints the bars.
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import time
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent


def options():
    ap = argparse.ArgumentParser(description="Measures Sluice beside its peers; see run.sh.")
    ap.add_argument("--harness", required=True, help="the harness with our templates (run.sh makes it)")
    ap.add_argument("--proto", required=True)
    ap.add_argument("--rows", default="", help="regular expression on row names")
    ap.add_argument("--reps", type=int)
    ap.add_argument("--quick", type=float, nargs="?", const=0.1, default=1.0)
    ap.add_argument("--lock", default=os.environ.get("BENCH_LOCK", ""))
    ap.add_argument("--out", default="", help="append every burst to this file, one JSON object a line")
    ap.add_argument("--attempts", type=int, default=5, help="bursts until one is not disturbed")
    ap.add_argument("--calm", type=float, default=10, help="seconds to wait for a quiet machine before each")
    ap.add_argument("--list", action="store_true")
    opts = ap.parse_args()
    if opts.reps is None:
        opts.reps = 5 if opts.quick == 1.0 else 2
    # What the harness' functions want to find.
    vars(opts).update(proxy_core="0", load_core="1", keep=False, steal=0.04, cc="reno")
    return opts


def own_namespace():
    """Ports, addresses and congestion control of our own: nothing outside sees this run, nor it them."""
    if os.environ.get("BENCH_NETNS") != "1":
        os.environ["BENCH_NETNS"] = "1"
        os.execvp("unshare", ["unshare", "-n", sys.executable] + sys.argv)
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text("reno")
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("10000 64000")


class Bursts:
    """Interleaved bursts of (peer, scenario) pairs, and the medians over them."""

    def __init__(self, bench, peers, opts):
        self.bench, self.peers, self.opts = bench, peers, opts
        self.done = {}  # (peer, scenario) -> records
        self.lock = bench.Lock(opts)

    def measure(self, cells, scenarios):
        """`reps` rounds over the cells that have not been measured; the order rotates, so that drift hits all alike."""
        cells = [c for c in dict.fromkeys(cells) if c not in self.done]
        for rep in range(self.opts.reps if cells else 0):
            turn = rep % len(cells)
            for peer, scenario in cells[turn:] + cells[:turn]:
                self.lock.turn()
                try:
                    records = self.bench.one(peer, self.peers[peer], scenario, scenarios[scenario], self.opts)
                except RuntimeError as error:
                    records = [dict(peer=peer, scenario=scenario, ok=False, disturbed=False, why=str(error))]
                record = records[-1]
                # The harness wants each call at the backend; a hit has no business there.
                why = record.get("why")
                if self.peers[peer].get("hits") and isinstance(why, dict) and "run" in why:
                    record["ok"] = bool(why["run"].get("ok")) and why["served"] == 0 and why["bad"] == 0
                self.done.setdefault((peer, scenario), []).append(record)
                if self.opts.out:
                    with open(self.opts.out, "a") as f:
                        f.write(json.dumps(dict(record, rep=rep)) + "\n")
                state = "FAILED " + json.dumps(record.get("why"))[:400] if not record["ok"] else \
                    "disturbed" if record["disturbed"] else ""
                print(f"  {rep} {scenario:22} {peer:12} {record.get('cpu_us', 0):8.2f} us/call  p99 {record.get('p99') or 0:8.1f}  {state}",
                      file=sys.stderr, flush=True)
        self.lock.release()

    def median(self, peer, scenario, value):
        """Median over the good bursts; the second value is False where only disturbed ones could be had."""
        good = [r for r in self.done.get((peer, scenario), []) if r["ok"]]
        calm = [r for r in good if not r["disturbed"]]
        if not good:
            return None, False
        return statistics.median(value(r) for r in (calm or good)), bool(calm)


def main():
    opts = options()
    sys.path[:0] = [opts.harness, str(HERE)]
    import rows
    if opts.list:
        print("\n".join(dict.fromkeys(row.name for row in rows.ROWS)))
        print("\n".join(rows.SPECIAL))
        return 0
    own_namespace()
    import bench
    import report_table
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is stopped
    peers = tomllib.loads((Path(opts.harness) / "peers.toml").read_text())["peer"]
    peers |= tomllib.loads((HERE / "peers.toml").read_text())["peer"]
    wanted = [row for row in rows.ROWS if re.search(opts.rows, row.name)]
    special = [name for name in rows.SPECIAL if re.search(opts.rows, name)]
    scenarios = rows.scenarios(bench)
    bursts = Bursts(bench, peers, opts)
    table = report_table.Table()
    started = time.time()
    # Scenario by scenario, so that what is compared is measured next to each other.
    for name in dict.fromkeys(name for row in wanted for _, name in row.cells()):
        bursts.measure([c for row in wanted for c in row.cells() if c[1] == name], scenarios)
    for row in wanted:
        table.add(row.evaluate(bursts))
    for name in special:
        for line in rows.SPECIAL[name](bench, peers, bursts, opts):
            table.add(line)
    print(table.render())
    print(f"\n{time.time() - started:.0f} s; {opts.reps} runs each, medians. ~ : the machine was never quiet enough.")
    return 0 if table.complete else 1


if __name__ == "__main__":
    sys.exit(main())
