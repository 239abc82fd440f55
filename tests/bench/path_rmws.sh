#!/bin/sh
# Every atomic read-modify-write that the proxy executes for a call, exactly, by the line that does it (with the functions it
# is inlined in): path_bench steps through 10 calls. "words": how many different words in memory that place wrote.
#
#   tests/bench/path_rmws.sh [--build DIR] [VARIANT...]      (DIR: default build/release; VARIANT: default unary)
set -eu
. "$(dirname "$0")/path_options.sh"
for variant in ${variants:-unary}; do
  "$bench" --rmws --variant="$variant" | {
    read -r summary
    echo "$variant: $summary"
    sort -rn | while read -r count place words; do
      # Places outside the program (a library's, the kernel's) have no line.
      where=$(addr2line -Cfipe "$bench" "$place" 2>/dev/null | grep -v 'std::\|__gnu_cxx\|Slice::Slice(' |
        sed 's/^ *(inlined by) //; s/([^()]*)//g; s/sluice:://g; s| at /.*/src/| at |; s/ (discriminator [0-9]*)//' | head -5 |
        awk '{printf "%s%s", (NR > 1 ? " < " : ""), $0}')
      echo "  $count ($words words)  $where"
    done
  }
done
