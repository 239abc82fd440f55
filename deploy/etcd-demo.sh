#!/usr/bin/env bash
# A fleet that finds itself with etcd alone: a server of etcd, and nodes of a backend and a sidecar each. A sidecar announces itself, finds
# the others, and sends calls on to them by their key. Nodes come and go, and etcd ends and loses its data, while calls run: none fails.
# Stays up until Ctrl-C; with --once it cleans up and exits 0, or non-zero if anything it shows is not so.
# shellcheck source=deploy/demo.sh
source "$(dirname "$0")/demo.sh" etcd-demo "$@"
export ETCDCTL_API=3

keys=1000  # different keys in the demo
prefix=/sluice/echo/
declare -A backend sidecar

etcdctl_() { etcdctl --endpoints "127.0.0.1:${port[etcd]}" --dial-timeout=1s --command-timeout=2s "$@"; }
start_etcd() {
  local peers=http://127.0.0.1:${port[peers]} clients=http://127.0.0.1:${port[etcd]}
  etcd --name demo --data-dir "$work/etcd" --listen-client-urls "$clients" --advertise-client-urls "$clients" \
    --listen-peer-urls "$peers" --initial-advertise-peer-urls "$peers" --initial-cluster "demo=$peers" >"$work/etcd.log" 2>&1 &
  etcd=$!
  children[$etcd]=1
  wait_for "etcd answers" etcdctl_ get /
}
kill_etcd() {
  kill -KILL "$etcd"
  unset "children[$etcd]"
  wait "$etcd" 2>/dev/null || true
}
ctl() { "$bin/sluicectl" --address "unix:$work/node-$1.sock" "${@:2}"; }
# A node's number: its backend, and the sidecar in front of it. A call without `via` is of a client, and goes to the node of its key; one
# with it is from another sidecar, and goes to the backend.
start_node() {
  local name=node-$1 at=127.0.0.1:${port[node-$1]}
  start_echo "$name" "${port[echo-$1]}"
  backend[$1]=$started
  cat >"$work/$name.yaml" <<YAML
listeners:
  - address: $at
clusters:
  - name: local
    endpoints: [127.0.0.1:${port[echo-$1]}]
  - name: fleet
    slow_start: {window: 0}
    discovery:
      etcd: {servers: [127.0.0.1:${port[etcd]}], prefix: $prefix}
      ready_timeout: 1s
      empty_after: 2s
routes:
  - {cluster: local, metadata: [{name: via}]}
  - {cluster: fleet, hash_by: {metadata: x-key}}
announce:
  - {address: $at, name: $name, lease: 3s, etcd: {servers: [127.0.0.1:${port[etcd]}], prefix: $prefix}}
forwarding: {via: true}
admin: {grpc: "unix:$work/$name.sock"}
YAML
  start_sluiced "$work/$name.yaml" "$work/sidecar-$1.log"
  sidecar[$1]=$started
  say "$name: a backend, and a sidecar at $at"
}
# First the sidecar, which takes its announcement back; then what it fronts.
stop_node() {
  stop "${sidecar[$1]}" || fail "the sidecar of node-$1 did not end with exit code 0"
  stop "${backend[$1]}" || true
}
# knows NODE NODES...: its list has these nodes, and no others.
knows() {
  local node=$1 found
  found=$(ctl "$node" endpoints fleet | awk '/active/ { print $1 }' | sort | xargs) || return 1
  [ "$found" = "$(printf 'node-%s\n' "${@:2}" | sort | xargs)" ]
}
all_know() {
  local node
  for node in "$@"; do wait_for "node-$node knows the nodes $*" knows "$node" "$@"; done
  say "each of the nodes $* knows all of them"
}
# same_map NODES...: every sidecar sends each key to the same node. A worker that is still making its connection to a node sends calls
# of that node's keys to another one meanwhile.
same_map() {
  local node
  for node in "$@"; do
    "$bin/sluice-echo" client --target "127.0.0.1:${port[node-$node]}" --keys "$keys" --calls "$keys" --print-map "$work/map" \
      >"$work/map.log" 2>&1 || { calls_failed=yes; return 0; }  # told below, and not tried again
    sort "$work/map" >"$work/map.$node"
  done
  for node in "$@"; do cmp -s "$work/map.$1" "$work/map.$node" || return 1; done
}
# served_by NODES...: calls with all keys reach these nodes and no others, by every sidecar.
served_by() {
  local found calls_failed=no
  wait_for "the sidecars agree on which node has a key" same_map "$@"
  [ "$calls_failed" = no ] || fail "calls failed: $(cat "$work/map.log")"
  found=$(cut -d= -f2 "$work/map.$1" | sort -u | xargs)
  [ "$found" = "$(printf 'node-%s\n' "$@" | sort | xargs)" ] || fail "calls were served by $found"
  say "every sidecar sends each of $keys keys to the same one of $found"
}

build etcd

heading "etcd, and three nodes that find each other"
port[etcd]=$(free_port 7379)
port[peers]=$(free_port 7380)
for n in 1 2 3 4; do
  port[node-$n]=$(free_port "707$n")
  port[echo-$n]=$(free_port "710$n")
done
start_etcd
for n in 1 2 3; do start_node "$n"; done
all_know 1 2 3
etcdctl_ get --prefix "$prefix" | paste - - | sed 's/^/     /'
served_by 1 2 3

heading "Calls run through node-1; nodes come and go"
start_load "${port[node-1]}" "$keys" 500
start_node 4
all_know 1 2 3 4
served_by 1 2 3 4
say "node-2 leaves (SIGTERM)"
stop_node 2
all_know 1 3 4
served_by 1 3 4
load_runs
start_node 2
all_know 1 2 3 4
load_runs

heading "etcd is killed, and comes back"
kill_etcd
wait_for "the loss is seen" bash -c "'$bin/sluicectl' --address 'unix:$work/node-1.sock' clusters | grep -q UNAVAILABLE"
ctl 1 clusters | sed 's/^/     /'
served_by 1 2 3 4
start_etcd
say "node-3 leaves (SIGTERM)"
stop_node 3
all_know 1 2 4

heading "etcd loses its data"
kill_etcd
rm -rf "$work/etcd"
start_etcd
announced() { [ "$(etcdctl_ get --prefix --keys-only "$prefix" | grep -c .)" -eq 3 ]; }
wait_for "all nodes announce themselves again" announced
all_know 1 2 4
served_by 1 2 4

end_load node-4
say "not one call failed"

if [ "$once" = yes ]; then
  heading "Stopping"
  for n in 1 2 4; do stop_node "$n"; done
  [ -z "$(etcdctl_ get --prefix --keys-only "$prefix")" ] || fail "announcements were left behind"
  say "every sidecar took its announcement back, drained and exited 0"
  stop "$etcd" || true
  exit 0
fi
heading "Everything stays up until Ctrl-C"
say "calls: $bin/sluice-echo client --target 127.0.0.1:${port[node-1]} --kind all"
say "list:  $bin/sluicectl --address unix:$work/node-1.sock clusters"
say "keys:  ETCDCTL_API=3 etcdctl --endpoints 127.0.0.1:${port[etcd]} get --prefix $prefix"
wait "${sidecar[1]}" || fail "sluiced ended by itself"
