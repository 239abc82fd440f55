#!/usr/bin/env bash
# merge.sh [TARGET...]: takes from build/fuzz/corpus what reaches code that tests/fuzz/corpus does not, as found-HASH: small
# files, at most 40 of a target, those with the most new edges first come first (libFuzzer's merge goes from small to large).
set -euo pipefail
cd "$(dirname "$0")/../.."

targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
fi
most=40
bytes_max=1024
for target in "${targets[@]}"; do
  corpus=tests/fuzz/corpus/$target
  added=$(mktemp -d)
  small=$(mktemp -d)
  find "build/fuzz/corpus/$target" -type f -size -${bytes_max}c -exec cp -t "$small" {} +
  # The first folder gets what the corpus, given behind it, lacks.
  cp "$corpus"/* "$added/"
  "build/fuzz/bin/${target}_fuzz" -merge=1 -timeout=10 -rss_limit_mb=2048 "$added" "$small" >/dev/null 2>&1
  have=$(find "$corpus" -name 'found-*' | wc -l)
  while read -r file; do
    [ -e "$corpus/$(basename "$file")" ] && continue
    [ "$have" -lt "$most" ] || break
    cp "$file" "$corpus/found-$(sha1sum "$file" | cut -c1-10)"
    have=$((have + 1))
  done < <(find "$added" -type f -printf '%s %p\n' | sort -n | cut -d' ' -f2)
  echo "$target: $(find "$corpus" -type f | wc -l) inputs, $(du -sb "$corpus" | cut -f1) bytes"
  rm -r "$added" "$small"
done
