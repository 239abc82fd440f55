#!/usr/bin/env bash
# From a change at a source to the first call at the new endpoint, and calls while a list changes a hundred times a second.
#
#   tests/bench/discovery/run.sh [--changes N] [--phases N]        some five minutes; needs deploy/install-deps.sh etcd
set -euo pipefail
cd "$(dirname "$0")/../../.."
cmake --preset release >/dev/null
cmake --build --preset release --target discovery_latency bench_peers
command -v etcd >/dev/null || { echo "run.sh: etcd is missing: deploy/install-deps.sh etcd" >&2; exit 1; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/sluice-discovery.XXXXXX")
pids=()
finish() {
  for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null && wait "$pid" || true; done
  rm -rf "$scratch"
}
trap finish EXIT
read -r client peer backend < <(python3 -c 'import socket
sockets = [socket.socket() for _ in range(3)]
for s in sockets: s.bind(("127.0.0.1", 0))
print(*(s.getsockname()[1] for s in sockets))')
etcd --data-dir "$scratch/data" --listen-client-urls "http://127.0.0.1:$client" --advertise-client-urls "http://127.0.0.1:$client" \
  --listen-peer-urls "http://127.0.0.1:$peer" >"$scratch/log" 2>&1 &
pids+=($!)
build/release/bin/peers/backend --listen "0.0.0.0:$backend" >/dev/null 2>&1 &
pids+=($!)
for _ in $(seq 100); do
  ETCDCTL_API=3 etcdctl --endpoints "127.0.0.1:$client" endpoint health >/dev/null 2>&1 && break
done
build/release/bin/discovery_latency --etcd "127.0.0.1:$client" --backend "$backend" --client build/release/bin/peers/load_client "$@" | grep -v "^\[" # without the log of the proxy in it
