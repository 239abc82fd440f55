#!/usr/bin/env bash
# run.sh --seeds N --binary SLUICED [--from N] [--part N] [--jobs N] [FLAG...]: the long run of tests/hostile, in parts of --part seeds
# (1000), each on a process tree of its own, --jobs (2) of them at once. Ends with 1 if a part fails, behind all of them; other flags
# go to each part. The program is taken from build/release or build/debug: ninja -C build/debug hostile hostile_grpc_backend
set -euo pipefail
cd "$(dirname "$0")/../.."
seeds=20000 from=1 part=1000 jobs=2 more=()
while [ $# -gt 0 ]; do
  case $1 in
    -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;;
    --seeds) seeds=$2; shift 2 ;;
    --from) from=$2; shift 2 ;;
    --part) part=$2; shift 2 ;;
    --jobs) jobs=$2; shift 2 ;;
    *) more+=("$1"); shift ;;
  esac
done
program=
for build in release debug; do
  if [ -z "$program" ] && [ -x "build/$build/bin/hostile" ]; then program=build/$build/bin/hostile; fi
done
if [ -z "$program" ]; then
  echo "run.sh: there is no build/release/bin/hostile and no build/debug/bin/hostile" >&2
  exit 2
fi
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
trap 'kill $(jobs -p) 2>/dev/null; exit 130' INT TERM
play() {
  "$program" --from "$1" --seeds "$2" "${more[@]}" >"$said/$1" 2>&1 || touch "$said/$1.failed"
  cat "$said/$1"
}
end=$((from + seeds)) start=$SECONDS
for ((at = from; at < end; at += part)); do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs" ]; do wait -n; done
  play "$at" $((end - at < part ? end - at : part)) &
done
wait
failed=$(find "$said" -name '*.failed' | wc -l)
echo "run.sh: $seeds seeds from $from in $((SECONDS - start)) s: $failed parts with violations"
[ "$failed" -eq 0 ]
