#!/usr/bin/env bash
# Installs the modules of tests/web where CMake looks for them: build/web, or the folder that is given. Does nothing where
# they are there as package-lock.json has them.
set -euo pipefail
cd "$(dirname "$0")"
to=${1:-../../build/web}
command -v npm >/dev/null || { echo "web: npm is missing: deploy/install-deps.sh xds" >&2; exit 1; }
mkdir -p "$to"
if cmp -s package-lock.json "$to/installed-lock.json"; then exit 0; fi
cp package.json package-lock.json "$to"
(cd "$to" && npm ci --ignore-scripts --no-audit --no-fund --loglevel=error)
cp package-lock.json "$to/installed-lock.json"
