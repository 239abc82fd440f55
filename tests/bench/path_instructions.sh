#!/bin/sh
# Instructions of the proxy itself for one call, exactly: path_bench under callgrind, which counts inside
# PathRig::ProxyTurn alone; a run of 2N calls less one of N, so that start-up and warm-up cancel.
#
#   tests/bench/path_instructions.sh [--build DIR] [--calls N] [--profile] [--lines PATTERN] [VARIANT...]
#
# DIR: where path_bench was built (default build/release). VARIANT: see path_bench.cc (default unary full cache 4KiB).
# --profile: also the functions that cost most, with instructions per call of their own and with what they call.
# --lines: also what the source lines cost that match PATTERN, inlined or not (source_lines.py).
# The figures differ between compilers and with the C library; between two runs of one program by nothing.
set -eu
calls=20000
. "$(dirname "$0")/path_options.sh"
command -v valgrind >/dev/null || wrong "needs valgrind"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# VARIANT CALLS: instructions collected, in $scratch/VARIANT.CALLS
collect() {
  timeout 600 valgrind --tool=callgrind --toggle-collect='sluice::test::PathRig::ProxyTurn()' \
    --callgrind-out-file="$scratch/$1.$2" "$bench" --variant="$1" --calls="$2" >"$scratch/out" 2>"$scratch/log" ||
    { cat "$scratch/log" >&2; exit 1; }
  sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$scratch/log"
}

# FILE yes|no: "instructions function" of the run in FILE, of its own or with what it calls; inlined parts count with it.
functions() {
  callgrind_annotate --auto=no --inclusive="$2" --threshold=100 "$1" 2>/dev/null | awk -v inclusive="$2" '
    /^ *[0-9,]+ \(/ && !/PROGRAM TOTALS/ {
      n = $1; gsub(",", "", n); n += 0
      sub(/^ *[0-9,]+ \([ 0-9.]+%\) */, ""); sub(/ \[[^]]*\]$/, ""); sub(/^[^:]*:/, "")
      if (inclusive == "yes") { if (n > sum[$0]) sum[$0] = n } else sum[$0] += n
    }
    END { for (f in sum) printf "%.0f %s\n", sum[f], f }' | sort -rn
}
# FILE: the rig's copies in and out of its streams in memory, which the kernel makes where there are sockets.
copies() { functions "$1" yes | awk '/PathStream::(Read|Write)\(/ {sum += $1} END {printf "%.0f", sum}'; }

for variant in ${variants:-unary full cache 4KiB}; do
  one=$(collect "$variant" "$calls")
  two=$(collect "$variant" $((2 * calls)))
  file=$scratch/$variant.$((2 * calls))
  echo "$variant $one $two $calls $(copies "$scratch/$variant.$calls") $(copies "$file")" | awk '{
    copies = ($6 - $5) / $4
    printf "%-9s %8.1f instructions per call (and %.0f for copies in memory, the kernel'\''s with sockets)\n", $1,
           ($3 - $2) / $4 - copies, copies }'
  [ -z "$lines" ] ||
    "$(dirname "$0")/source_lines.py" "$scratch/$variant.$calls" "$file" "$calls" "$lines" --list
  [ -n "$profile" ] || continue
  # Of the larger run, with its warm-up, so a little above the figure.
  for inclusive in no yes; do
    [ $inclusive = yes ] && echo "  with what they call:" || echo "  of their own:"
    functions "$file" $inclusive | grep -v 'main\|RunCalls\|RunUntilIdle\|ProxyTurn\|libc_start' | head -70 |
      awk -v calls=$((2 * calls)) '{n = $1; $1 = ""; printf "    %8.1f %.140s\n", n / calls, $0}'
  done
done
