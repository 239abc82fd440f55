# Bursts: interleaved bursts of (peer, scenario) pairs, and what is quoted of them.
import json
import statistics
import sys

from bed import burst
from machine import Turns


class Bursts:
    def __init__(self, peers, opts):
        self.peers, self.opts = peers, opts
        self.done = {}  # (peer, scenario) -> records
        self.turns = Turns(opts.lock, opts.calm)

    def measure(self, cells, scenarios):
        """`reps` rounds over the cells that have not been measured; the order rotates, so that drift hits all alike."""
        cells = [c for c in dict.fromkeys(cells) if c not in self.done]
        for rep in range(self.opts.reps if cells else 0):
            turn = rep % len(cells)
            for peer, scenario in cells[turn:] + cells[:turn]:
                self.turns.take()
                try:
                    records = burst(peer, self.peers[peer], scenario, scenarios[scenario], self.opts)
                except RuntimeError as error:
                    records = [dict(peer=peer, scenario=scenario, ok=False, disturbed=False, why=str(error))]
                self.keep(peer, scenario, rep, records[-1])
        self.turns.release()

    def keep(self, peer, scenario, rep, record):
        # Each call is to reach the backend; a hit of the cache has no business there.
        why = record.get("why")
        if self.peers[peer].get("hits") and isinstance(why, dict) and "run" in why:
            record["ok"] = bool(why["run"].get("ok")) and why["served"] == 0 and why["bad"] == 0
        self.done.setdefault((peer, scenario), []).append(record)
        if self.opts.out:
            with open(self.opts.out, "a") as file:
                file.write(json.dumps(record | dict(rep=rep)) + "\n")
        state = "FAILED " + json.dumps(record.get("why"))[:400] if not record["ok"] else "disturbed" if record["disturbed"] else ""
        print(f"  {rep} {scenario:22} {peer:12} {record.get('cpu_us', 0):8.2f} us/call  p99 {record.get('p99') or 0:8.1f}  {state}",
              file=sys.stderr, flush=True)

    def usable(self, peer, scenario):
        """The good bursts that nothing disturbed; only where there are none, those that were."""
        good = [r for r in self.done.get((peer, scenario), []) if r["ok"]]
        return [r for r in good if not r["disturbed"]] or good

    def median(self, peer, scenario, value):
        """Median over the usable bursts; the second value is False where only disturbed ones could be had."""
        records = self.usable(peer, scenario)
        if not records:
            return None, False
        return statistics.median(value(r) for r in records), not records[0]["disturbed"]
