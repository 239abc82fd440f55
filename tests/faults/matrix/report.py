# The rows as text, with all that was counted, and as the Markdown table of docs/reliability.md.
from judge import misses
from measure import BAD
from peers import EVERY


def plain(row):
    if row.note:
        return f"{row.peer:8} {row.fault:15} {row.note}"
    back = "never" if row.back is None else f"after {row.back:.2f} s"
    lines = [f"{row.peer:8} {row.fault:15} failed {row.failed['Get']} Get, {row.failed['Put']} Put ({row.put_failed_late} late); "
             f"twice {row.twice['Get']} Get, {row.twice['Put']} Put; not labelled {row.unlabelled}; share in the second half "
             f"{row.share:.1%}; back {back}; cores taken by other programs before: {row.busy:.2f}"]
    for name, phase in row.phases.items():
        failed = ", ".join(f"{count} {what}" for what, count in sorted(phase.failed.items())) or "none"
        others = [count for backend, count in phase.executed.items() if backend != BAD]
        executed = f"{phase.executed.get(BAD, 0)} by the sick backend, {min(others, default=0)} to {max(others, default=0)} by each other"
        lines.append(f"  {name:7} {phase.calls:6} calls, Get p50 {phase.p50:.1f} p99 {phase.p99:.1f} ms, executed {executed}, of these again "
                     f"{phase.repeated}; failed: {failed}")
    return "\n".join(lines)


def cell(row):
    if row is None:
        return ""
    if row.note:
        return row.note
    text = f"{row.failed['Get']} + {row.failed['Put']}"
    if row.twice["Put"]:
        text += f", {row.twice['Put']} twice"
    before, second = row.phases["before"].p99, row.phases["second"].p99
    text += f"; {before:.0f} → {second:.0f} ms; {row.share:.0%}; "
    return text + ("not back" if row.back is None else f"{row.back:.1f} s")


# `versions`: peer -> its version, or that it is not installed.
def markdown(rows, faults, versions, options):
    names = list(versions)
    out = [f"{options.backends} backends, {options.rate} calls/s for {options.seconds} s ({options.arrivals} arrivals, seed "
           f"{options.seed}, {options.repeatable}% of them `Get`), answers after {options.service_ms:g} ms, deadline "
           f"{options.deadline_ms} ms; {options.machine}.", "",
           "| fault | " + " | ".join(f"{EVERY[name].title} {versions[name]}" for name in names) + " |", "|---|" + "---|" * len(names)]
    for fault in faults:
        cells = [cell(next((row for row in rows if row.peer == name and row.fault == fault.name), None)) for name in names]
        out.append(f"| {fault.title} | " + " | ".join(cells) + " |")
    return "\n".join(out)


# Prints what each of Sluice's rows misses; returns how many rows do.
def judge(rows, faults):
    missed = 0
    for row in rows:
        if row.peer == "sluice" and not row.note:
            found = misses(row, faults[row.fault])
            missed += bool(found)
            print(f"{row.fault}: " + ("met" if not found else "MISSED: " + "; ".join(found)))
    return missed
