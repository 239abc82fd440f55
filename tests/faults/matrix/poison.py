# Calls that end their connection at each backend, 10 a second among honest ones: what these lose, how often each poison is executed,
# and whether an endpoint is ejected for it.
import collections
import re

from faults import Fault
from measure import Bed
from peers import EVERY

POISON_RATE = 10
HONEST_FAILURES_MAX = 0.001
RUNS_MAX = 2

NOTHING = Fault("poison", "calls that end their connections", lambda bed: None, lambda bed: None, everywhere=("--raw", "poison"))


# The calls' lines as the client wrote them: whether each is poison, its status and its reason, by number.
def lines_of(folder):
    with open(f"{folder}/calls", encoding="utf-8") as file:
        for line in file:
            number, method, _, _, status, reason, _, _ = line.rstrip("\n").split("\t")
            yield int(number), method == "Poison", int(status), reason


# Whether the bounds hold.
def main(options):
    with Bed(EVERY["sluice-poison"], NOTHING, options) as bed:
        bed.client_flags += ["--poison", POISON_RATE]
        bed.run()
        runs = collections.Counter(number for backend in bed.backends for number in backend.executions())
        changes = re.findall(r"cluster matrix endpoint .* -> .*", bed.proxies[0].text())
        calls = list(lines_of(bed.folder))
    honest = [(status, reason) for _, poison, status, reason in calls if not poison]
    poisons = [(number, status, reason) for number, poison, status, reason in calls if poison]
    failed = collections.Counter(f"{status} {reason}" for status, reason in honest if status != 0)
    ejections = sum("-> ejected" in change for change in changes)
    most = max((runs[number] for number, _, _ in poisons), default=0)
    print(f"{len(honest)} honest calls, of which {failed.total()} failed ({failed.total() / max(1, len(honest)):.3%}): {dict(failed)}\n"
          f"{len(poisons)} poisons: {dict(collections.Counter(reason for _, _, reason in poisons))}, "
          f"executed {dict(sorted(collections.Counter(runs[number] for number, _, _ in poisons).items()))} times (runs: calls)\n"
          f"{ejections} ejections", *changes, sep="\n", flush=True)
    return failed.total() <= HONEST_FAILURES_MAX * len(honest) and most <= RUNS_MAX and ejections == 0
