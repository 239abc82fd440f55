# Load where all backends fail all calls: what they get to do, for each call that clients make, behind one Sluice and behind two.
from dataclasses import dataclass

from faults import Fault
from measure import Bed
from peers import PEERS

RATIO, PER_SECOND = 0.2, 3  # a budget: executions more for each call, and so many a second besides. Layers add theirs up


# What the backends got in a span of seconds.
@dataclass
class Load:
    layers: int
    seconds: float
    calls: int
    executions: int

    # How far above the bound; at most 0 is within.
    def above(self):
        return self.executions - self.calls - self.layers * (RATIO * self.calls + PER_SECOND * self.seconds)

    def __str__(self):
        return (f"layers {self.layers}: {self.calls} calls in {self.seconds:.1f} s were executed {self.executions} times, "
                f"{self.executions / max(1, self.calls):.3f} for each; the bound is {self.executions - self.above():.0f}")


def tell_all(line):
    def tell(bed):
        for backend in bed.backends:
            backend.tell(line)
    return tell


TOTAL = Fault("total", "all backends answer UNAVAILABLE", tell_all("unavailable 100"), tell_all("healthy"))


def measure_total(options, layers):
    with Bed(PEERS["sluice"], TOTAL, options, layers) as bed:
        begun, ended = bed.run()
        calls = [call for call in bed.calls().values() if begun <= call.begun < ended]
        if any(call.status == "OK" for call in calls if call.begun > begun + 0.1 and call.ended < ended):
            raise RuntimeError("a call succeeded, though all backends failed")
        return Load(layers, ended - begun, len(calls), sum(len(call.executed) for call in calls))


# Whether all are within the bound.
def main(options):
    loads = [measure_total(options, layers) for layers in (1, 2)]
    for load in loads:
        print(load, flush=True)
    return all(load.above() <= 0 for load in loads)
