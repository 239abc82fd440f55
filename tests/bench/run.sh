#!/bin/sh
# Measures Sluice beside HAProxy, nghttpx and a minimal relay in one run and prints each bar: ours, theirs, ratio, met or not.
#
#   tests/bench/run.sh [--peers-dir DIR] [--build DIR] [--rows REGEX] [--reps N] [--quick [FACTOR]] [--lock FILE] [--out FILE]
#
# --peers-dir: the harness' folder, with bench.py (default: $SLUICE_PEERS_DIR, else ../shared/bench/peers beside this checkout).
#   It is copied into the build folder; nothing is written to it.
# --build: a release build (default build/release); configured and brought up to date first, unless --no-build.
# --rows: only rows whose name matches; --list shows them. --reps: interleaved runs of each (default 5).
# --quick: short bursts (a tenth, or FACTOR) and 2 runs: an impression, not a figure to quote.
# --lock: a file to flock while measuring, shared with whatever else measures on this machine.
#
# Needs root (a network namespace of its own) and Python 3.11; row "ring change" python3-grpcio and protoc too.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
build=$repo/build/release peers=${SLUICE_PEERS_DIR:-} stale=1
n=$#
while [ "$n" -gt 0 ]; do
  arg=$1
  shift
  n=$((n - 1))
  case $arg in
    --build | --peers-dir)
      [ "$n" -gt 0 ] || { echo "run.sh: $arg needs a folder" >&2; exit 2; }
      folder=$(cd "$1" 2>/dev/null && pwd) || { echo "run.sh: no folder $1" >&2; exit 2; }
      [ "$arg" = --build ] && build=$folder || peers=$folder
      shift
      n=$((n - 1)) ;;
    --no-build) stale= ;;
    -h | --help) sed -n '2,14s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) set -- "$@" "$arg" ;;
  esac
done
[ -n "$peers" ] || peers=$(cd "$repo/.." && pwd)/shared/bench/peers
[ -f "$peers/bench.py" ] || {
  echo "run.sh: no bench.py in $peers: name the harness' folder with --peers-dir or SLUICE_PEERS_DIR" >&2
  exit 2
}
if [ -n "$stale" ]; then
  [ -f "$build/build.ninja" ] || (cd "$repo" && cmake --preset release -B "$build") >&2 || exit 1
  cmake --build "$build" --target sluiced >&2 || exit 1
fi
[ -x "$build/bin/sluiced" ] || { echo "run.sh: no sluiced in $build/bin" >&2; exit 2; }

# The harness with our templates among its own. Its programs are built once.
copy=$build/peers
mkdir -p "$copy/conf"
cp -r "$peers/bench.py" "$peers/peers.toml" "$peers/Makefile" "$peers/src" "$copy/"
cp "$peers/conf/"* "$repo/tests/bench/conf/"* "$copy/conf/"
make -s -C "$copy" core || { echo "run.sh: the harness' programs could not be built (see its README)" >&2; exit 2; }

SLUICED=$build/bin/sluiced
export SLUICED
python=/usr/bin/python3  # the one that has the distribution's grpcio
[ -x "$python" ] || python=python3
exec "$python" "$repo/tests/bench/run.py" --harness "$copy" --proto "$repo/proto" "$@"
