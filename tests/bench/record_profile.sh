#!/bin/sh
# Records the profile that the release build of the data path is optimised by: builds it instrumented, makes calls of
# every kind, and packs the counts into cmake/profile-gcc<major>.tar.gz.
#
#   tests/bench/record_profile.sh [--build DIR] [--no-sockets]
#
# --build: where the instrumented build goes (default build/profile; it is emptied first).
# --no-sockets: only path_bench's calls are counted; the others go through the processes of peers/run.sh, which needs root.
#
# To be run again when much of the data path has changed: what changed since is compiled without counts.
set -eu
repo=$(cd "$(dirname "$0")/../.." && pwd)
build=$repo/build/profile sockets=yes
while [ $# -gt 0 ]; do
  case $1 in
    --build)
      [ $# -gt 1 ] || { echo "record_profile.sh: --build needs a folder" >&2; exit 2; }
      build=$2
      shift ;;
    --no-sockets) sockets= ;;
    -h | --help) sed -n '2,11s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "record_profile.sh: unknown argument $1 (--build DIR, --no-sockets)" >&2; exit 2 ;;
  esac
  shift
done
major=$(g++ -dumpversion | cut -d. -f1)
record=$repo/cmake/profile-gcc$major.tar.gz
rm -rf "$build"
# No compiler cache: the instrumented code holds the place its counts are written to.
CCACHE_DISABLE=1
export CCACHE_DISABLE
cd "$repo"
cmake --preset release -B "$build" -DCMAKE_CXX_COMPILER=g++ -DSLUICE_PROFILE=record >/dev/null
cmake --build "$build" --target sluiced path_bench bench_peers
find "$build" -name '*.gcda' -delete

for variant in unary m1 full cache 4KiB; do
  "$build/bin/path_bench" --variant=$variant --calls=30000
done
if [ -n "$sockets" ]; then
  scenarios='^(c1 m100|c4 m32|c32 m32|4KiB c1 m100|1core c1 m1|bulk 8MiB c1 m1)$'
  "$repo/tests/bench/peers/run.sh" compare --build "$build" --no-build --peers sluice,sluice-full,sluice-cache \
    --rows "$scenarios" --quick 0.1 --reps 1
fi

# The name of each file is the object's path with # for /, as the compiler looks for it.
counts=$(mktemp -d)
trap 'rm -rf "$counts"' EXIT
cd "$build"
find src -name '*.gcda' | while read -r file; do
  cp "$file" "$counts/$(printf %s "$file" | tr / '#')"
done
[ -n "$(ls "$counts")" ] || { echo "record_profile.sh: no counts were written" >&2; exit 1; }
# The same counts make the same archive.
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -C "$counts" -cf - . | gzip -n9 >"$record"
echo "$record: $(ls "$counts" | wc -l) files, $(wc -c <"$record") bytes"
