#!/usr/bin/env bash
# Builds Sluice, puts it in front of three demo backends, and shows calls being balanced while the list changes under them.
# Then stays up until Ctrl-C; with --once it cleans up and exits 0, or non-zero if anything it shows is not so.
# shellcheck source=deploy/demo.sh
source "$(dirname "$0")/demo.sh" quickstart "$@"

keys=1000  # different keys in the demo
config=config/quickstart.yaml

start_backend() {
  start_echo "$1" "${port[$1]}"
  say "$1 listens on 127.0.0.1:${port[$1]}"
}
client() { "$bin/sluice-echo" client --target "$target" --keys "$keys" "$@"; }
ctl() { "$bin/sluicectl" --address "$admin" "$@"; }
# map FILE: asks where each key goes now.
map() { client --calls "$keys" --print-map "$1" >"$work/map.log" 2>&1 || fail "calls failed: $(cat "$work/map.log")"; }
# moved BEFORE AFTER: "key before after" for each key that changed its backend.
moved() { join -t= "$1" "$2" | awk -F= '$2 != $3 { print $1, $2, $3 }'; }
percent() { awk -v part="$1" -v whole="$keys" 'BEGIN { printf "%.1f%%", 100 * part / whole }'; }

build

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
start_sluiced "$config" "$work/sluiced.log"
sluiced=$started
wait_for "sluiced listens" ctl status
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
start_load "${port[sluiced]}" "$keys" 1000
map "$work/before"
say "\$ sluicectl remove echo echo-2"
ctl remove echo echo-2 | sed 's/^/     /' || fail "sluicectl remove failed"
map "$work/removed"
start_backend echo-4
say "\$ sluicectl add echo echo-4=127.0.0.1:${port[echo-4]}"
ctl add echo "echo-4=127.0.0.1:${port[echo-4]}" | sed 's/^/     /' || fail "sluicectl add failed"
map "$work/added"
ctl endpoints echo | sed 's/^/     /'
end_load echo-4

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
