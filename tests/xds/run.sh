#!/usr/bin/env bash
# Installs what the tests of xDS compare Sluice with, and runs them with the programs of a build.
#   tests/xds/run.sh --owners                   ring: xds against grpc-js-xds, 10,000 keys a ring
#   --bin DIR                                   the programs; default: build/release/bin
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
bin=$here/../../build/release/bin
while [ $# -gt 0 ]; do
  case $1 in
    --owners) shift; continue ;;
    --bin) bin=${2:?where} ;;
    *) sed -n '2,4s/^# \?//p' "$0" >&2; exit 2 ;;
  esac
  shift 2
done
"$here/install.sh"
export NODE_PATH=$here/../../build/xds/node_modules
node "$here/owners_test.js" "$bin"
