#!/usr/bin/env bash
# patches_test.sh SOURCE: each patch of broken/ fits the tree, and says what it takes back and what finds it.
set -euo pipefail
cd "$1"
failed=0
for patch in tests/hostile/broken/*.patch; do
  if ! patch -p1 -s -f --dry-run --fuzz=0 -o /dev/null <"$patch" >/dev/null 2>&1; then
    echo "$patch does not fit any more: make it again from what takes the fix back now"
    failed=1
  fi
  for word in "Takes back: " "Finds: "; do
    if ! grep -q "^$word" "$patch"; then
      echo "$patch does not say \"$word\""
      failed=1
    fi
  done
done
exit "$failed"
