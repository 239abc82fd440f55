# Honest noise in real time, in which no backend may be ejected: Poisson arrivals, latency with a long tail, a few errors everywhere, one
# backend with twice the latency of the others, one that starts anew with a cold cache, and all failing at once.
import re
import time
from dataclasses import dataclass

from faults import Fault
from measure import Bed
from peers import PEERS
from processes import GRACE
from total import tell_all

FAILURES = 5            # times that all fail for a second, as behind a shared database
COLD = (8, 4, 2)        # how slow the cold cache makes its backend, one after the other


def noisy(bed):
    tell_all("noise 1")(bed)
    bed.backends[1].tell("noise 2")


def fail_together(bed):
    for _ in range(FAILURES):
        tell_all("unavailable 100")(bed)
        time.sleep(1)
        noisy(bed)
        time.sleep(bed.options.seconds / 32)


def start_cold(bed):
    bed.bad.replace()
    for factor in COLD:
        bed.bad.tell(f"noise {factor}")
        time.sleep(bed.options.seconds / 64)
    bed.bad.tell("noise 1")


NOISE = Fault("noise", "honest noise", fail_together, start_cold, flags=("--grace-ms", str(int(GRACE * 1000))))


@dataclass
class Heard:
    calls: int
    failed: dict      # status -> calls
    changes: list     # of endpoints' states, as the log tells them
    ejections: int

    def __str__(self):
        return "\n".join([f"{self.calls} calls, {self.ejections} ejections; failed: {self.failed or 'none'}", *self.changes])


def listen(options):
    with Bed(PEERS["sluice"], NOISE, options) as bed:
        noisy(bed)
        bed.run()
        calls = bed.calls().values()
        changes = re.findall(r"cluster matrix endpoint .*", bed.proxies[0].text())
        statuses = [call.status for call in calls]
        failed = {status: statuses.count(status) for status in sorted(set(statuses) - {"OK"})}
        return Heard(len(calls), failed, changes, sum(1 for change in changes if "-> ejected" in change))


# Whether none was ejected.
def main(options):
    heard = listen(options)
    print(heard, flush=True)
    return heard.ejections == 0
