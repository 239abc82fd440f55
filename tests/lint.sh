#!/bin/sh
# clang-tidy (.clang-tidy) and cppcheck over src/ and cmd/. Exits 1 if either has something to say.
#
#   tests/lint.sh [--build DIR] [--jobs N] [--tidy | --cppcheck] [PATH...]
#
# DIR: a build folder of this script's own (default build/lint), with generated headers and without what clang does not know: the
# recorded profile, LTO. PATH: files or folders below src/ or cmd/ (default: all of both).
# Each file that clang-tidy has passed is remembered in DIR/passed, as long as no header is newer: a second run is quick.
# clang-tidy-14 and cppcheck: deploy/install-deps.sh lint
set -eu
cd "$(dirname "$0")/.."
build=build/lint jobs=$(nproc) what=both paths=
while [ $# -gt 0 ]; do
  case $1 in
    --build) build=$2; shift ;;
    --jobs) jobs=$2; shift ;;
    --tidy | --cppcheck) what=${1#--} ;;
    -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) paths="$paths $1" ;;
  esac
  shift
done
tidy=clang-tidy-14
for tool in $tidy cppcheck; do
  command -v $tool >/dev/null || { echo "lint.sh: needs $tool: deploy/install-deps.sh lint" >&2; exit 2; }
done
cmake --preset release -B "$build" -DSLUICE_PROFILE=off -DSLUICE_LTO=OFF -DSLUICE_HARDEN=OFF -DSLUICE_BENCH=OFF >/dev/null
ninja -C "$build" gen/sluice/admin/v1/admin.pb.h gen-echo/sluice/echo/v1/echo.pb.h >/dev/null
passed=$build/passed
files=$(find ${paths:-src cmd} -name '*.cc' | sort)
failed=0

if [ "$what" != cppcheck ]; then
  # Compilers other than gcc do not know its options for coroutines and warnings; clang's own warnings are not asked for.
  mkdir -p "$passed"
  newest=$(find src cmd .clang-tidy \( -name '*.h' -o -name .clang-tidy \) -printf '%T@ %p\n' | sort -n | tail -1 | cut -d' ' -f2)
  todo=
  for file in $files; do
    mark=$passed/$(echo "$file" | tr / _)
    if [ "$mark" -nt "$file" ] && [ "$mark" -nt "$newest" ]; then continue; fi
    todo="$todo $file"
  done
  if [ -n "$todo" ]; then
    echo "clang-tidy: $(echo "$todo" | wc -w) files"
    printf '%s\n' $todo | BUILD=$build TIDY=$tidy xargs -P "$jobs" -I{} sh -c '
      if $TIDY --quiet -p "$BUILD" --extra-arg=-Wno-everything --extra-arg=-Wno-unknown-warning-option "$1" 2>"$BUILD/passed/err.$$" >"$BUILD/passed/out.$$"; then
        touch "$BUILD/passed/$(echo "$1" | tr / _)"; rc=0
      else
        cat "$BUILD/passed/out.$$"; grep -v "warnings\? \(generated\|treated\)" "$BUILD/passed/err.$$" || true; rc=1
      fi
      rm -f "$BUILD/passed/out.$$" "$BUILD/passed/err.$$"; exit $rc' lint {} || failed=1
  fi
fi

if [ "$what" != tidy ]; then
  echo "cppcheck: $(echo "$files" | wc -l) files"
  # performance and portability besides errors and warnings; style is clang-format's and tidy's. Single places are suppressed
  # where they are (cppcheck-suppress), with a reason.
  cppcheck --quiet --std=c++20 --language=c++ --enable=warning,performance,portability --inline-suppr --error-exitcode=1 -j "$jobs" \
    --suppressions-list=tests/cppcheck.supp -I src -I cmd/sluicectl $files || failed=1
fi
[ "$failed" = 0 ] && echo "lint: clean"
exit "$failed"
