#!/usr/bin/env python3
# The table of what restart runs have measured, as Markdown: of run.py, or "report.py FILE" of the lines that --json wrote.
import json
import sys

CLIENTS = ("c++", "js", "python")


def total(counts):
    return sum(counts.values())


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))] if values else float("nan")


def row(record):
    clients = [record["clients"][name] for name in CLIENTS if name in record["clients"]]
    connects = record["clients"]["connects"]
    durations = [one["serves_ms"] for one in record["restarts"] if "serves_ms" in one]
    errors = len(record["restarts"]) - len(durations)
    calls = sum(client["calls"] for client in clients)
    gaps = " / ".join(f"{record['clients'][name]['gap_ms']:.0f}" if name in record["clients"] else "-" for name in CLIENTS)
    above = sum(backend["above_limit"] for backend in record["backends"])
    unopened = sum(total(client["unopened"]) for client in clients)
    streams = sum(client["streams"] for client in clients) - unopened
    return [
        record["title"],
        f"{len(durations)}" + (f" ({errors} failed)" if errors else ""),
        f"{calls / record['seconds']:.0f}",
        f"{sum(total(client['failed']) for client in clients)} of {calls}",
        f"{total(connects['failed'])} of {connects['calls']}",
        str(record["restarts_noticed"]),
        gaps,
        f"{max(client['max_ms'] for client in clients):.0f}",
        f"{max(client['lag_ms'] for client in clients):.0f}",
        f"{max(backend['concurrent_max'] for backend in record['backends'])}",
        f"{above}" if record["limits"] else "-",
        f"{sum(total(client['broken']) for client in clients)} of {streams}",
        str(unopened),
        f"{max(client['stream_wait_ms'] for client in clients):.0f}",
        f"{quantile(durations, 0.5):.0f} / {max(durations, default=float('nan')):.0f}",
        f"{max((one['waited_ms'] for one in record['restarts']), default=0) / 1e3:.1f}",
        f"{record['old_max']} / {record['old_end']}",
        f"{record['processors']['idle']:.0%} / {record['processors']['taken']:.0%}" if "processors" in record else "-",
    ]


HEAD = [
    "proxy", "restarts", "calls/s", "failed calls", "failed connects", "restarts noticed", "longest gap c++ / js / python, ms",
    "slowest call, ms", "clients' lag, ms", "most calls at a backend", "above the limit", "broken streams", "unopened streams",
    "slowest echo, ms", "restart p50 / max, ms", "longest wait for the old, s", "old processes max / end",
    "processors idle / taken by the host"]


def details(record):
    """What failed, and why, by client."""
    out = []
    for name, client in record["clients"].items():
        for what in ("failed", "broken", "unopened"):
            for status, count in sorted(client.get(what, {}).items(), key=lambda item: -item[1])[:8]:
                out.append(f"- {record['proxy']}, {name}, {what}: {count} x {status}")
    if record.get("stopped"):
        out.append(f"- {record['proxy']}, ended early: {record['stopped'].splitlines()[0]}")
    errors = [(number, one) for number, one in enumerate(record["restarts"], 1) if "error" in one]
    for number, one in errors[:8]:
        out.append(f"- {record['proxy']}, restart {number}: {one['error']}")
    return out


def table(records):
    if not records:
        return "nothing was measured"
    columns = [HEAD] + [row(record) for record in records]
    # Proxies beside each other: there are more figures than proxies.
    lines = []
    for index, name in enumerate(HEAD):
        lines.append("| " + " | ".join([name] + [column[index] for column in columns[1:]]) + " |")
        if index == 0:
            lines.append("|---" * len(columns) + "|")
    notes = [line for record in records for line in details(record)]
    return "\n".join(lines + ([""] + notes if notes else []))


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(table([json.loads(line) for line in file]))
