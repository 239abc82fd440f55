# The driver behind run.sh: every wanted fault for every wanted peer, in namespaces of its own where that is permitted.
import argparse
import dataclasses
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "bench" / "peers"))  # machine.py
LIMITS = {"backends": (2, 200), "rate": (10, 20000), "seconds": (2, 600), "service_ms": (0, 1000), "deadline_ms": (10, 60000),
          "repeatable": (1, 100), "seed": (0, 1 << 30)}
ABSENT = "is not installed"


def options():
    ap = argparse.ArgumentParser(prog="run.sh", description="What clients see when one backend is sick; see run.sh.")
    ap.add_argument("--build", required=True, type=Path)
    ap.add_argument("--peers", default="", help="comma-separated; default: all")
    ap.add_argument("--faults", default="", help="the same; a name may be a regular expression")
    ap.add_argument("--backends", type=int, default=5)
    ap.add_argument("--rate", type=int, default=1000, help="calls a second")
    ap.add_argument("--seconds", type=int, help="of each row; the fault lasts from 3/16 to 11/16 (default 16)")
    ap.add_argument("--quick", action="store_true", help="rows of 8 s")
    ap.add_argument("--service-ms", type=float, default=10)
    ap.add_argument("--deadline-ms", type=int, default=1000)
    ap.add_argument("--repeatable", type=int, default=50, help="percent of the calls that may be repeated, from 1")
    ap.add_argument("--arrivals", choices=["poisson", "fixed"], default="poisson")
    ap.add_argument("--seed", type=int, default=1)
    ap.add_argument("--check", action="store_true", help="exit 1 if a row of Sluice misses a bound of judge.py")
    ap.add_argument("--markdown", help="write the table here")
    ap.add_argument("--json", help="append each row here")
    ap.add_argument("--keep", action="store_true", help="keep the last row's files")
    ap.add_argument("--total", action="store_true", help="instead: the load where all backends fail all calls")
    ap.add_argument("--noise", action="store_true", help="instead: honest noise for --seconds (default 600), in which none may be ejected")
    ap.add_argument("--poison", action="store_true", help="instead: calls that end their connections, 10 a second among the others")
    ap.add_argument("--list", action="store_true", help="names of peers and faults")
    opts = ap.parse_args()
    opts.seconds = opts.seconds or (600 if opts.noise else 8 if opts.quick else 16)
    for name, (least, most) in LIMITS.items():
        if not least <= getattr(opts, name) <= most:
            ap.error(f"--{name.replace('_', '-')}: {getattr(opts, name)}; it is from {least} to {most}")
    opts.build = opts.build.resolve()
    opts.programs, opts.scratch = opts.build / "bin" / "matrix", str(opts.build / "matrix" / str(os.getpid()))
    return ap, opts


# Addresses and processes of our own: what is started here ends with us, however that comes about. Without the permission the run
# goes on as it is.
def own_namespaces():
    if "MATRIX_NAMESPACES" in os.environ or not shutil.which("unshare"):
        return
    spaces = ["--net", "--pid", "--fork", "--kill-child", "--mount-proc"]
    for user in ([], ["--user", "--map-root-user"]):
        command = ["unshare", *user, *spaces, "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
        if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0:
            os.environ["MATRIX_NAMESPACES"] = "1"
            os.execvp("unshare", [*command, sys.executable, *sys.argv])
    print("run.sh: no namespaces here: the rows that need one are skipped", file=sys.stderr)


# Those named, each by a regular expression; in the table's order.
def chosen(ap, flag, text, every):
    patterns = text.split(",") if text else [".*"]
    for pattern in patterns:
        if not any(re.fullmatch(pattern, name) for name in every):
            ap.error(f"{flag}: {pattern} is none of {', '.join(every)}")
    return [one for name, one in every.items() if any(re.fullmatch(pattern, name) for pattern in patterns)]


# Cores that something else keeps busy, over half a second in which nothing of ours runs.
def busy():
    import machine
    before, began = machine.totals()["busy"], time.monotonic()
    time.sleep(0.5)
    return round((machine.totals()["busy"] - before) / ((time.monotonic() - began) * 1e6), 2)


def main():
    ap, opts = options()
    from faults import FAULTS
    from peers import EVERY, PEERS, program_of, version_of
    if opts.list:
        print("peers:", *EVERY, "faults:", *(f"{fault.name:16}{fault.title}" for fault in FAULTS.values()), sep="\n  ")
        return 0
    own_namespaces()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that what was started is ended
    if opts.total:
        import total
        return 0 if total.main(opts) else 1
    if opts.poison:
        import poison
        return 0 if poison.main(opts) else 1
    if opts.noise:
        import noise
        return 0 if noise.main(opts) else 1
    peers, faults = chosen(ap, "--peers", opts.peers, EVERY if opts.peers else PEERS), chosen(ap, "--faults", opts.faults, FAULTS)
    import report
    from measure import Row, measure
    versions = {}
    for peer in peers:
        absent = bool(peer.program) and program_of(peer, opts.build) is None
        versions[peer.name] = ABSENT if absent else version_of(peer, opts.build)
    said = ", ".join(f"{name} {version}" for name, version in versions.items())
    print(f"{opts.arrivals} arrivals, seed {opts.seed}; {said}", flush=True)
    rows = []
    for fault in faults:
        for peer in peers:
            load = busy()
            absent = versions[peer.name] == ABSENT
            row = Row(peer.name, fault.name, note="not installed") if absent else measure(peer, fault, opts)
            row.busy = load
            rows.append(row)
            print(report.plain(row), flush=True)
            if opts.json:
                with open(opts.json, "a", encoding="utf-8") as file:
                    file.write(json.dumps(dataclasses.asdict(row)) + "\n")
    loads = sorted(row.busy for row in rows)
    opts.machine = f"{os.cpu_count()} cores, of which other programs took {loads[len(loads) // 2]:.1f} (median; at most {loads[-1]:.1f})"
    table = report.markdown(rows, faults, versions, opts)
    print("\n" + table)
    if opts.markdown:
        Path(opts.markdown).write_text(table + "\n", encoding="utf-8")
    return 1 if opts.check and report.judge(rows, FAULTS) else 0


if __name__ == "__main__":
    sys.exit(main())
