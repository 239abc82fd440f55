# What the demos of this folder share: a folder to work in, programs that are stopped with the demo, waits with a bound, and the build.
# To be sourced with the demo's name and arguments.
# shellcheck shell=bash
set -euo pipefail
export LC_ALL=C
cd "$(dirname "${BASH_SOURCE[0]}")/.."

demo=$1
shift
wait_tenths=150  # bound on every wait, in tenths of a second
once=no
preset=release
while [ $# -gt 0 ]; do
  case "$1" in
    --once) once=yes ;;
    --preset)
      [ $# -gt 1 ] || { echo "deploy/$demo.sh: --preset needs the name of a preset" >&2; exit 2; }
      preset=$2
      shift
      ;;
    *) echo "usage: deploy/$demo.sh [--once] [--preset PRESET]" >&2; exit 2 ;;
  esac
  shift
done
bin=build/$preset/bin

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-$demo.XXXXXX")
declare -A children  # pids of what the demo started and has not stopped yet: it stops nothing else
declare -A port

heading() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
say() { printf '   %s\n' "$*"; }
fail() {
  printf '\n%s: NOT SO: %s\n' "$demo" "$*" >&2
  local log
  for log in "$work"/*.log; do
    [ -s "$log" ] && { echo "--- last lines of $(basename "$log")"; tail -n 20 "$log"; } >&2
  done
  exit 1
}

# stop PID: SIGTERM, and SIGKILL if that takes too long. The exit code is the process's own.
stop() {
  local i
  kill -TERM "$1" 2>/dev/null || true
  for ((i = 0; i < wait_tenths; i++)); do
    kill -0 "$1" 2>/dev/null || break
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
  unset "children[$1]"
  wait "$1"
}
clean_up() {
  local child
  for child in "${!children[@]}"; do stop "$child" 2>/dev/null || true; done
  rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM

# wait_for WHAT COMMAND...: until the command succeeds; bounded.
wait_for() {
  local what=$1 i
  shift
  for ((i = 0; i < wait_tenths; i++)); do
    if "$@" >/dev/null 2>&1; then return; fi
    sleep 0.1
  done
  fail "not in time: $what"
}
in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# free_port WANTED: the wanted port, or another one if it is in use.
free_port() {
  local candidate=$1
  while in_use "$candidate"; do candidate=$((20000 + RANDOM % 12000)); done
  echo "$candidate"
}

# start_echo NAME PORT: a backend; its pid is $started.
start_echo() {
  "$bin/sluice-echo" server --listen "127.0.0.1:$2" --name "$1" >"$work/$1.log" 2>&1 &
  started=$!
  children[$started]=1
  wait_for "backend $1 listens" grep -q listening "$work/$1.log"
}
# start_sluiced FILE LOG: with a configuration that is right; its pid is $started.
start_sluiced() {
  "$bin/sluiced" --check -c "$1" >"$work/check.log" || fail "sluiced --check finds $1 wrong"
  "$bin/sluiced" -c "$1" >"$2" 2>&1 &
  started=$!
  children[$started]=1
}
# start_load PORT KEYS RATE: calls of all kinds, so many a second, until end_load.
start_load() {
  "$bin/sluice-echo" client --target "127.0.0.1:$1" --keys "$2" --kind all --duration 120s --rate "$3" --concurrency 16 \
    --connections 4 >"$work/load.log" 2>&1 &
  load=$!
  children[$load]=1
}
load_runs() { kill -0 "$load" 2>/dev/null || fail "the running calls ended early: $(cat "$work/load.log")"; }
# end_load BACKEND: none has failed, and some went to this backend.
end_load() {
  load_runs
  stop "$load" || fail "calls failed: $(cat "$work/load.log")"
  sed 's/^/ /' "$work/load.log"
  grep -q ' 0 failed' "$work/load.log" || fail "calls failed"
  grep -q " $1 " "$work/load.log" || fail "no call of the running load went to $1"
}

# build PACKAGES...: the programs; and what install-deps.sh calls so, besides what the build needs.
build() {
  heading "Installing and building (nothing happens where nothing is missing)"
  deploy/install-deps.sh
  local packages
  for packages in "$@"; do deploy/install-deps.sh "$packages"; done
  cmake --preset "$preset" >"$work/configure.txt" 2>&1 || { cat "$work/configure.txt" >&2; fail "cmake could not configure"; }
  cmake --build --preset "$preset" --target sluiced sluicectl sluice-echo
}
