#!/usr/bin/env bash
# prove.sh [--seeds N] [NAME...]: takes back one fix after the other (broken/NAME.patch; all of them without names), in a build of its
# own, and says after how many seeds the harness finds the defect. Ends with 1 where it does not within N seeds (3000).
# The harness is that of build/release or build/debug; the daemon is compiled for debugging, in build/prove, with ccache, while
# the one before is played. A patch's head says what it takes back, by which words the harness finds it, and, where it would take
# long with the whole grammar, which productions are played.
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
# Plays until the harness has found it; says so in a line. `$2`: the daemon's copy, while the next one is built.
play() {
  local of=$patches/$1.patch only finds
  only=$(sed -n 's/^Plays: //p' "$of")
  finds=$(sed -n 's/^Finds: //p' "$of")
  "$program" --binary "$2" --seeds "$seeds" --until-found --no-shrink ${only:+--only "$only"} \
    --expect "$finds" >"build/prove/$1.log" 2>&1 || true
  rm "$2"
  local found
  found=$(grep -E '^seeds? [0-9]+( to [0-9]+)?:? (found|fails alone): ' "build/prove/$1.log" | grep -m 1 -F "$finds" | cut -c 1-160 || true)
  if [ -n "$found" ]; then
    echo "$1: $(grep -oE 'hostile: [0-9]+ seeds' "build/prove/$1.log"): $found"
  else
    echo "$1: NOT FOUND: $(tail -n 1 "build/prove/$1.log")"
    touch build/prove/failed
  fi
}

rm -f build/prove/failed
playing=
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
for name in "${names[@]}"; do
  patch -p1 -s -f -d "$source" <"$patches/$name.patch"
  if ninja -C "$source/build/debug" ${JOBS:+-j "$JOBS"} sluiced >"build/prove/$name.build.log" 2>&1; then
    cp "$source/build/debug/bin/sluiced" "build/prove/$name.sluiced"
    if [ -n "$playing" ]; then wait "$playing"; fi
    play "$name" "build/prove/$name.sluiced" &
    playing=$!
    # What shows as slowness is not played while compilers run.
    if grep -q '^Finds: .*slow' "$patches/$name.patch"; then wait "$playing"; fi
  else
    echo "$name: DOES NOT BUILD: $(grep -m 1 -E 'error:|FAILED' "build/prove/$name.build.log")"
    touch build/prove/failed
  fi
  patch -R -p1 -s -f -d "$source" <"$patches/$name.patch"
done
wait
[ ! -e build/prove/failed ]
