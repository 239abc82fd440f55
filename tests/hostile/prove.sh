#!/usr/bin/env bash
# prove.sh [--seeds N] [NAME...]: takes back one fix after the other (broken/NAME.patch; all of them without names), in a build of its
# own, and says after how many seeds the harness finds the defect. Ends with 1 where it does not within N seeds (3000).
# The harness is that of build/release or build/debug; the daemon is compiled for debugging, in build/prove, with ccache.
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=3000 names=()
while [ $# -gt 0 ]; do
  case $1 in
    --seeds) seeds=$2; shift 2 ;;
    *) names+=("$1"); shift ;;
  esac
done
if [ ${#names[@]} -eq 0 ]; then
  for patch in tests/hostile/broken/*.patch; do names+=("$(basename "$patch" .patch)"); done
fi
program=
for build in release debug; do
  if [ -z "$program" ] && [ -x "build/$build/bin/hostile" ]; then program=$PWD/build/$build/bin/hostile; fi
done
if [ -z "$program" ]; then
  echo "prove.sh: there is no build/release/bin/hostile and no build/debug/bin/hostile" >&2
  exit 2
fi
patches=$PWD/tests/hostile/broken source=build/prove/src
mkdir -p "$source"
# The tree as it is, with its times, so that only what differs is compiled.
git ls-files -z | xargs -0 cp -p --parents -t "$source"
# As deep below its sources as the usual build: ccache knows most of it.
(cd "$source" && cmake --preset debug) >build/prove/cmake.log
failed=0
for name in "${names[@]}"; do
  patch -p1 -s -f -d "$source" <"$patches/$name.patch"
  if ninja -C "$source/build/debug" ${JOBS:+-j "$JOBS"} sluiced >"build/prove/$name.build.log" 2>&1; then
    "$program" --binary "$source/build/debug/bin/sluiced" --seeds "$seeds" --until-found --expect "$(sed -n "s/^Finds: //p" "$patches/$name.patch")" >"build/prove/$name.log" 2>&1 || true
    if grep -q ': found: ' "build/prove/$name.log"; then
      echo "$name: $(grep -oE 'hostile: [0-9]+ seeds' "build/prove/$name.log"): $(grep -m 1 -oE '^seed [0-9]+: found: .{0,140}' "build/prove/$name.log")"
    else
      echo "$name: NOT FOUND: $(tail -n 1 "build/prove/$name.log")"
      failed=1
    fi
  else
    echo "$name: DOES NOT BUILD: $(grep -m 1 -E 'error:|FAILED' "build/prove/$name.build.log")"
    failed=1
  fi
  patch -R -p1 -s -f -d "$source" <"$patches/$name.patch"
done
exit "$failed"
