#!/usr/bin/env bash
# What a concurrency limit keeps of a backend's capacity when five times as much is asked for: docs/semaphore.md, "Overload".
#
#   tests/bench/overload/run.sh [--build DIR] [--no-build] [--seconds N]
#
# A backend of 10 slots x 10 ms +-50%, which executes what its callers have given up, behind sluiced with
# `concurrency: {max: 12}` and defaults. One line of figures a row; exits 1 where a row misses its bar.
set -euo pipefail
targets="sluiced overload" programs="sluiced overload"
. "$(dirname "$0")/../../support/release_build.sh"
seconds=20
[ "${1:-}" = --seconds ] && seconds=$2
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sluice-overload.XXXXXX")
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" 2>/dev/null || true; done
  rm -rf "$scratch"
}
trap finish EXIT
mkfifo "$scratch/stays"
exec 3<>"$scratch/stays"  # the backend ends with its input
: >"$scratch/backend"
"$build/bin/overload" backend <&3 >"$scratch/backend" &
pids+=($!)
until read -r _ backend <"$scratch/backend" 2>/dev/null && [ -n "${backend:-}" ]; do read -rt 0.05 <&3 || true; done
port=$("$python" -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])')
cat >"$scratch/sluice.yaml" <<CONFIG
workers: 1
listeners: [{address: '127.0.0.1:$port'}]
clusters:
  - name: service
    endpoints: ['127.0.0.1:$backend']
    concurrency: {max: 12}
routes: [{cluster: service}]
CONFIG
"$build/bin/sluiced" -c "$scratch/sluice.yaml" >"$scratch/log" 2>&1 &
pids+=($!)
failed=0
# row RATE DEADLINE_MS GOODPUT_MIN% IN_VAIN_MAX% REFUSED_MAX%
row() {
  local line
  line=$("$build/bin/overload" client --target "127.0.0.1:$port" --backend "127.0.0.1:$backend" --rate "$1" --deadline-ms "$2" \
    --seconds "$seconds" --capacity 1000)
  echo "$line"
  "$python" - "$line" "$3" "$4" "$5" <<'CHECK' || failed=1
import re, sys
line, goodput, vain, refused = sys.argv[1], *map(float, sys.argv[2:])
found = lambda pattern: float(re.search(pattern, line).group(1))
bad = []
if found(r"\(([\d.]+)% of the best") < goodput: bad.append(f"goodput below {goodput}%")
if found(r"in vain ([\d.]+)%") > vain: bad.append(f"executed in vain above {vain}%")
if found(r"refused ([\d.]+)%") > refused: bad.append(f"refused above {refused}%")
print("   " + "; ".join(bad)) if bad else None
sys.exit(bool(bad))
CHECK
}
row 900 1000 99 0.5 0  # first: what is left in the backend's queue by an overload would be its own
row 5000 1000 97 0.5 100
row 5000 250 97 0.5 100
exit $failed
