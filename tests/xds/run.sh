#!/usr/bin/env bash
# Installs what the tests of xDS compare Sluice with, and runs them with the programs of a build.
#   tests/xds/run.sh                            owners, then 100 updates
#   tests/xds/run.sh --owners                   ring: xds against grpc-js-xds, 10,000 keys a ring
#   tests/xds/run.sh --updates 1000 --seed 7    random updates to gRPC C++, grpc-js and Sluice
#   --bin DIR                                   the programs; default: build/release/bin
#   --peers LIST                                of grpc-cpp,grpc-js,sluice: clients that get the updates; default: all
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/../../build/release/bin
owners=1 updates=100 seed=$RANDOM peers=grpc-cpp,grpc-js,sluice
while [ $# -gt 0 ]; do
  case $1 in
    --owners) updates=0; shift; continue ;;
    --updates) owners=0 updates=${2:?how many} ;;
    --seed) seed=${2:?which} ;;
    --bin) bin=${2:?where} ;;
    --peers) peers=${2:?which} ;;
    *) sed -n '2,7s/^# \?//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
"$here/install.sh"
export NODE_PATH=$here/../../build/xds/node_modules
if [ "$owners" = 1 ]; then
  node "$here/owners_test.js" "$bin"
fi
if [ "$updates" != 0 ]; then
  echo "seed $seed"
  node "$here/updates_test.js" "$bin" "$updates" "$seed" "$peers"
fi
