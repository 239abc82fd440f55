# What is measured and what it must show. Each bar is a ratio of medians from one interleaved run.
from dataclasses import dataclass
from typing import Callable

import hold
import ring_change
from report_table import Line
from scenarios import SCENARIOS, scenario


def cpu(r):
    return r["cpu_us"]


def busiest(r):
    return r["cpu_us"] * r["busiest"]


@dataclass
class Row:
    name: str
    what: str
    ours: tuple            # (peer, scenario)
    theirs: tuple
    bar: float
    value: Callable = cpu
    theirs_value: Callable | None = None
    base: tuple | None = None  # subtracted from both: what there is without a proxy
    unit: str = "us"

    def cells(self):
        return [self.ours, self.theirs] + ([self.base] if self.base else [])

    def evaluate(self, bursts):
        ours, quiet = bursts.median(*self.ours, self.value)
        theirs, also = bursts.median(*self.theirs, self.theirs_value or self.value)
        if self.base:
            base, too = bursts.median(*self.base, self.value)
            quiet = quiet and too
            ours, theirs = ((None if x is None or base is None else x - base) for x in (ours, theirs))
        return Line(self.row(), self.what, ours, theirs, self.bar, unit=self.unit, quiet=quiet and also)

    def row(self):
        return self.name


def neighbours(scenario):
    """The backend's and the client's CPU per call, beside a byte relay's. In the layout in which they sleep: where they poll
    (2core), what they use is the time that passes."""
    sleeping = f"1core {scenario}"
    for side in ("backend", "client"):
        yield Row(f"{scenario} neighbours", f"{side}'s CPU, of mode tcp", ("sluice", sleeping), ("haproxy-tcp", sleeping), 1.10,
                  value=lambda r, key=f"{side}_us": r[key])


def admission(scenario):
    yield Row(f"{scenario} full", "all limits, of none", ("sluice-full", scenario), ("sluice", scenario), 1.10)


def rows():
    for s in ("c1 m100", "c4 m32", "c32 m32"):
        yield Row(s, "of mode tcp", ("sluice", s), ("haproxy-tcp", s), 2.0)
        yield Row(s, "of nghttpx", ("sluice", s), ("nghttpx", s), 0.25)
        yield from admission(s)
        yield from neighbours(s)
    for s in ("4KiB c1 m100", "4KiB c4 m32"):
        yield Row(s, "of mode tcp", ("sluice", s), ("haproxy-tcp", s), 1.6)
        yield from admission(s)
        yield from neighbours(s)
    s = "1core c1 m1"
    yield Row(s, "of the minimal relay", ("sluice", s), ("l4-min", s), 1.15)
    yield Row(s, "of nghttpx", ("sluice", s), ("nghttpx", s), 0.9)
    yield from admission(s)
    for s in ("bulk 8MiB c1 m1", "bulk 8MiB c4 m2"):
        yield Row(s, "of mode tcp", ("sluice", s), ("haproxy-tcp", s), 1.15)
        yield Row(s, "of HAProxy h2", ("sluice", s), ("haproxy-h2", s), 0.5)
        yield from admission(s)
        yield from neighbours(s)
    yield Row("cache hits c1 m100", "a hit, of mode tcp's miss", ("sluice-cache", "c1 m100"), ("haproxy-tcp", "c1 m100"), 1.0)
    for share, bar in (("0", 1.005), ("1", 1.01), ("100", 1.25)):
        yield Row("c1 m100 traced", f"{share}% exported, of none", (f"sluice-trace-{share}", "c1 m100"), ("sluice", "c1 m100"), bar)
    one, two = ONE_WORKER, "free 2 workers c1 m100"
    yield Row("2 workers c1 m100", "busiest thread, of one worker", ("sluice", two), ("sluice", one), 0.65, value=busiest,
              theirs_value=cpu)
    yield Row("2 workers c1 m100", "all CPU, of one worker", ("sluice", two), ("sluice", one), 1.25)
    for p in ("p50", "p99"):
        yield Row("20000 calls/s", f"{p} added, of mode tcp's", ("sluice", LATENCY), ("haproxy-tcp", LATENCY), 1.3,
                  value=lambda r, p=p: r[p], base=("direct", LATENCY))


LATENCY = "20k/s open loop"
ONE_WORKER = "free 1 worker c1 m100"
ROWS = list(rows())


def light_load(peers, bursts, opts):
    """2 workers at a tenth of what one worker can: no hops, so no more CPU than one worker."""
    name = "2 workers at 10% load"
    bursts.measure([("sluice", ONE_WORKER)], SCENARIOS)
    rate, _ = bursts.median("sluice", ONE_WORKER, lambda r: r["rps"])
    if rate is None:
        return [Line(name, "all CPU, of one worker", bar=1.05)]
    rate = int(rate / 10)
    cells = {}
    for workers in (1, 2):
        cells[f"free {workers} at {rate}/s"] = scenario("free", "load_client", 1, 100, rate * 2, workers=workers,
                                                      args=["--unique", "--rate", str(rate)], noscale=True)
    bursts.measure([("sluice", s) for s in cells], cells)
    one, two = (bursts.median("sluice", s, cpu) for s in cells)
    return [Line(name, f"all CPU at {rate}/s, of one worker", two[0], one[0], 1.05, quiet=one[1] and two[1])]


# Rows that a burst of a burst cannot express: name -> function(peers, bursts, opts) giving Lines.
SPECIAL = {
    "2 workers at 10% load": light_load,
    "ring change": ring_change.lines,
    "idle connections": hold.idle_connections,
    "open streams": hold.open_streams,
}
