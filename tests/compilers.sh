#!/bin/sh
# Checks all of src and cmd with each supported compiler that is installed, without generating code: warnings are errors.
#
#   tests/compilers.sh [COMPILER...]      default: g++-12 clang++-14 clang++-19; about three minutes of a processor each
set -eu
cd "$(dirname "$0")/.."
if [ $# -eq 0 ]; then set -- g++-12 clang++-14 clang++-19; fi
failed=0
for compiler in "$@"; do
  if ! command -v "$compiler" >/dev/null; then
    echo "compilers: $compiler is not installed: not checked"
    continue
  fi
  build=build/compilers/$compiler
  cmake --preset debug -B "$build" -DCMAKE_CXX_COMPILER="$compiler" -DSLUICE_BENCH=OFF >/dev/null
  ninja -C "$build" gen/sluice/admin/v1/admin.pb.h gen-echo/sluice/echo/v1/echo.pb.h >/dev/null
  python3 - "$build" >"$build/check.txt" <<'EOF'
import json
import re
import sys

with open(sys.argv[1] + "/compile_commands.json", encoding="utf-8") as file:
    for entry in json.load(file):
        # A unit that a test compiles for itself is checked as part of its own program.
        if re.search(r"/(src|cmd)/.*\.cc$", entry["file"]) and "sluice_test_headers" not in entry["command"]:
            command = re.sub(r"^\S*ccache ", "", entry["command"].split(" -o ")[0])
            print(f"cd {entry['directory']} && {command} -fsyntax-only {entry['file']}")
EOF
  echo "compilers: $compiler, $(wc -l <"$build/check.txt") files"
  if xargs -P "$(nproc)" -d '\n' -I{} sh -c '{}' <"$build/check.txt"; then
    echo "compilers: $compiler has nothing to say"
  else
    failed=1
  fi
done
exit "$failed"
