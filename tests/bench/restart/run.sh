#!/bin/sh
# Measures what clients notice when the process of a proxy is replaced by a new one: Sluice, HAProxy, nginx and nghttpx.
#
#   tests/bench/restart/run.sh                                        20 restarts of each, a minute and a half a proxy
#   tests/bench/restart/run.sh --proxies sluiced --restarts 1000      the full run: 50 minutes
#   tests/bench/restart/run.sh --help                                 all options; their meaning is in README.md
#
#   --build DIR: a build of Sluice (default build/release); configured and brought up to date first, unless --no-build.
#
# Needs `deploy/install-deps.sh peers` and `deploy/install-deps.sh xds`; installs grpc-js into build/xds (tests/xds/install.sh).
set -eu
targets="sluiced sluicectl bench_restart"
programs="sluiced sluicectl restart_backend restart_client"
. "$(dirname "$0")/../../support/release_build.sh"
"$repo/tests/xds/install.sh" >&2
exec "$python" "$repo/tests/bench/restart/run.py" --build "$build" --modules "$repo/build/xds/node_modules" "$@"
