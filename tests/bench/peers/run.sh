#!/bin/sh
# Measures Sluice beside HAProxy, nghttpx, nginx, Caddy, gRPC C++ and a minimal relay, in one interleaved run.
#
#   tests/bench/peers/run.sh [bars] [--rows REGEX]       each bar of docs/performance.md: ours, theirs, ratio, met or not
#   tests/bench/peers/run.sh compare [--peers A,B] [--rows REGEX]   all peers beside each other, as Markdown tables
#   tests/bench/peers/run.sh check | syscalls [--peers A,B]         replies verified at both ends; system calls of a call (perf)
#   tests/bench/peers/run.sh list                        rows, scenarios and peers
#
#   --build DIR: a release build (default build/release); configured and brought up to date first, unless --no-build.
#   --reps N: interleaved runs of each (default 5). --quick [FACTOR]: short bursts (a tenth) and 2 runs: an impression.
#   --lock FILE: flock it while measuring, shared with whatever else measures on this machine. --out FILE: every burst, as JSON.
#
# Needs root (a network namespace of its own), Python 3.11, and `deploy/install-deps.sh peers`. See README.md.
set -eu
for arg in "$@"; do
  case $arg in
    -h | --help) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
  esac
done
targets="sluiced bench_peers"
programs="sluiced peers/backend peers/load_client"
. "$(dirname "$0")/../../support/release_build.sh"
exec "$python" "$repo/tests/bench/peers/run.py" --build "$build" --proto "$repo/proto" "$@"
