#!/bin/sh
# What clients see when one backend of a cluster is sick: Sluice, HAProxy, nginx, nghttpx and gRPC's own client, row by row.
#
#   tests/faults/matrix/run.sh [--peers sluice,haproxy,...] [--faults kill,unavailable,...] [--backends 5] [--rate 1000]
#                              [--seconds 16] [--quick] [--seed 1] [--check] [--markdown FILE] [--json FILE] [--list]
#                              [--total] [--noise] [--poison]
#
#   --check: judges Sluice's rows (judge.py) and exits 1, naming what each misses. --quick: rows of 8 s. --list: peers and faults.
#   --build DIR: default build/release; configured and brought up to date first, unless --no-build. Others: --help.
#
# As root, or where user namespaces are permitted, everything runs in namespaces of its own; else on loopback, without the rows
# that need a namespace. Each row takes --seconds + 2. Peers that are not installed are said so (deploy/install-deps.sh peers).
set -eu
targets=fault_matrix
programs="sluiced matrix/matrix_backend matrix/matrix_client"
. "$(dirname "$0")/../../support/release_build.sh"
PYTHONDONTWRITEBYTECODE=1 exec "$python" "$repo/tests/faults/matrix/run.py" --build "$build" "$@"
