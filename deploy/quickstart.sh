#!/usr/bin/env bash
# Builds Sluice, puts it in front of three demo backends, and shows calls being balanced while the list changes under them.
# Then stays up until Ctrl-C; with --once it cleans up and exits 0, or non-zero if anything it shows is not so.
set -euo pipefail
export LC_ALL=C
cd "$(dirname "$0")/.."

keys=1000          # different keys in the demo
wait_tenths=100    # bound on every wait for a process, in tenths of a second
bin=build/release/bin
config=config/quickstart.yaml
once=no

case "${1:-}" in
  "") ;;
  --once) once=yes ;;
  *) echo "usage: deploy/quickstart.sh [--once]" >&2; exit 2 ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-quickstart.XXXXXX")
declare -A children  # pids of what this script started and has not stopped yet: it stops nothing else
declare -A port

heading() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
say() { printf '   %s\n' "$*"; }
fail() {
  printf '\nquickstart: NOT SO: %s\n' "$*" >&2
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
  fail "$what did not come up"
}
in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
# free_port WANTED: the wanted port, or another one if it is in use.
free_port() {
  local candidate=$1
  while in_use "$candidate"; do candidate=$((20000 + RANDOM % 12000)); done
  echo "$candidate"
}
start_backend() {
  "$bin/sluice-echo" server --listen "127.0.0.1:${port[$1]}" --name "$1" >"$work/$1.log" 2>&1 &
  children[$!]=1
  wait_for "backend $1" grep -q listening "$work/$1.log"
  say "$1 listens on 127.0.0.1:${port[$1]}"
}
client() { "$bin/sluice-echo" client --target "$target" --keys "$keys" "$@"; }
ctl() { "$bin/sluicectl" --address "$admin" "$@"; }
# map FILE: asks where each key goes now.
map() { client --calls "$keys" --print-map "$1" >"$work/map.log" 2>&1 || fail "calls failed: $(cat "$work/map.log")"; }
# moved BEFORE AFTER: "key before after" for each key that changed its backend.
moved() { join -t= "$1" "$2" | awk -F= '$2 != $3 { print $1, $2, $3 }'; }
percent() { awk -v part="$1" -v whole="$keys" 'BEGIN { printf "%.1f%%", 100 * part / whole }'; }

heading "Installing and building (nothing happens where nothing is missing)"
deploy/install-deps.sh
cmake --preset release >"$work/configure.txt" 2>&1 || { cat "$work/configure.txt" >&2; fail "cmake could not configure"; }
cmake --build --preset release --target sluiced sluicectl sluice-echo

heading "Three backends, and sluiced in front of them"
for name in echo-1 echo-2 echo-3 echo-4; do port[$name]=$(free_port "710${name#echo-}"); done
port[sluiced]=$(free_port 7070)
port[http]=$(free_port 7099)
admin=unix:/tmp/sluice-quickstart.sock
if [ -e "${admin#unix:}" ]; then admin=unix:$work/admin.sock; fi
# The file is used as it stands unless one of its addresses is in use.
sed -e "s|127\.0\.0\.1:7070|127.0.0.1:${port[sluiced]}|g" \
    -e "s|127\.0\.0\.1:7101|127.0.0.1:${port[echo-1]}|g" \
    -e "s|127\.0\.0\.1:7102|127.0.0.1:${port[echo-2]}|g" \
    -e "s|127\.0\.0\.1:7103|127.0.0.1:${port[echo-3]}|g" \
    -e "s|127\.0\.0\.1:7099|127.0.0.1:${port[http]}|g" \
    -e "s|unix:/tmp/sluice-quickstart\.sock|$admin|g" "$config" >"$work/quickstart.yaml"
if ! cmp -s "$config" "$work/quickstart.yaml"; then
  say "some of the usual addresses are taken; using $work/quickstart.yaml"
  config=$work/quickstart.yaml
fi
target=127.0.0.1:${port[sluiced]}
for name in echo-1 echo-2 echo-3; do start_backend "$name"; done
"$bin/sluiced" --check -c "$config" || fail "sluiced --check finds $config wrong"
"$bin/sluiced" -c "$config" >"$work/sluiced.log" 2>&1 &
sluiced=$!
children[$sluiced]=1
wait_for sluiced ctl status
say "sluiced listens on $target, its admin RPC on $admin"

heading "Which key goes to which backend ($keys keys, calls of all four kinds)"
client --calls $((4 * keys)) --kind all --print-map "$work/first" >"$work/tally" || fail "calls failed: $(cat "$work/tally")"
head -n 8 "$work/first" | sed 's/=/  ->  /; s/^/   /'
say "... and in all:"
sed 's/^/ /' "$work/tally"
[ "$(cut -d= -f2 "$work/first" | sort -u | xargs)" = "echo-1 echo-2 echo-3" ] || fail "not every backend got keys"
map "$work/again"
[ -z "$(moved "$work/first" "$work/again")" ] || fail "a key changed its backend although the list did not"
say "asked again, every key goes to the same backend"

heading "Removing echo-2 and adding echo-4 while calls are running"
# Not through client(): a function in the background is a subshell, and $! would not be the program's.
"$bin/sluice-echo" client --target "$target" --keys "$keys" --kind all --duration 120s --rate 1000 --concurrency 16 \
  --connections 4 >"$work/load.log" 2>&1 &
load=$!
children[$load]=1
map "$work/before"
say "\$ sluicectl remove echo echo-2"
ctl remove echo echo-2 | sed 's/^/     /' || fail "sluicectl remove failed"
map "$work/removed"
start_backend echo-4
say "\$ sluicectl add echo echo-4=127.0.0.1:${port[echo-4]}"
ctl add echo "echo-4=127.0.0.1:${port[echo-4]}" | sed 's/^/     /' || fail "sluicectl add failed"
map "$work/added"
ctl endpoints echo | sed 's/^/     /'
kill -0 "$load" 2>/dev/null || fail "the running calls ended early: $(cat "$work/load.log")"
stop "$load" || fail "calls failed while the list changed: $(cat "$work/load.log")"
sed 's/^/ /' "$work/load.log"
grep -q ' 0 failed' "$work/load.log" || fail "calls failed while the list changed"
grep -q ' echo-4 ' "$work/load.log" || fail "no call of the running load went to echo-4"

heading "How few keys moved"
moved "$work/before" "$work/removed" >"$work/moved.remove"
moved "$work/removed" "$work/added" >"$work/moved.add"
orphans=$(grep -c '=echo-2$' "$work/before" || true)
moves=$(wc -l <"$work/moved.remove")
say "removing echo-2 moved $moves of $keys keys ($(percent "$moves")): the $orphans that were on it, and no other"
[ "$(cut -d' ' -f2 "$work/moved.remove" | grep -cvx echo-2)" -eq 0 ] || fail "a key moved that was not on echo-2"
if [ "$moves" -ne "$orphans" ] || [ "$moves" -eq 0 ]; then fail "not every key left echo-2"; fi
moves=$(wc -l <"$work/moved.add")
say "adding echo-4 moved $moves of $keys keys ($(percent "$moves")): all of them to echo-4"
[ "$(cut -d' ' -f3 "$work/moved.add" | grep -cvx echo-4)" -eq 0 ] || fail "a key moved, but not to echo-4"
if [ "$moves" -eq 0 ] || [ "$moves" -ge $((keys / 2)) ]; then fail "$moves keys moved to echo-4; about a third was expected"; fi
say "and not one call failed"

if [ "$once" = yes ]; then
  heading "Stopping"
  stop "$sluiced" || fail "sluiced did not end with exit code 0 after SIGTERM"
  say "sluiced drained and exited 0"
  exit 0
fi
heading "Everything stays up until Ctrl-C"
say "calls:   $bin/sluice-echo client --target $target --kind all"
say "list:    $bin/sluicectl --address $admin endpoints echo"
say "metrics: http://127.0.0.1:${port[http]}/metrics"
say "remove:  $bin/sluicectl --address $admin remove echo echo-1"
wait "$sluiced" || fail "sluiced ended by itself"
