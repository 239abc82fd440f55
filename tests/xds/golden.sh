#!/usr/bin/env bash
# Writes tests/unit/upstream/testdata/xds_ring.txt anew: owners of keys that the installed @grpc/grpc-js-xds names.
set -euo pipefail
cd "$(dirname "$0")"
./install.sh
NODE_PATH=$PWD/../../build/xds/node_modules exec node owners_test.js --golden ../unit/upstream/testdata/xds_ring.txt
