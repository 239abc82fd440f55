#!/usr/bin/env bash
# run.sh [--changed COMMIT] [--within BUDGET] [SECONDS] [TARGET...]: builds the fuzz targets and runs each for SECONDS (60), from its corpus on.
# Fails if one finds something, keeps the input, and says how to replay it. What was found interesting is in
# build/fuzz/corpus/TARGET and is where the next run goes on; `tests/fuzz/merge.sh` takes the best of it into tests/fuzz/corpus.
#   --known: builds and runs nothing; fails unless each target's sources are known here and are there (ctest's fuzz.known).
#   --changed COMMIT: only targets whose sources changed since COMMIT ("": all).
#   --within BUDGET: build and runs take at most about BUDGET seconds: many targets get less than SECONDS each, and at least 10.
#   JOBS: targets at a time (default: the number of cores).
set -euo pipefail
cd "$(dirname "$0")/../.."

# What a target puts its input through, besides its own file: changes there are what it looks at.
sources_of() {
  case $1 in
    grpc_timeout) echo src/proxy/grpc_timeout ;;
    canonical) echo src/proxy/canonical ;;
    grpc_web) echo src/proxy/grpc_web ;;
    trace_context) echo src/proxy/tracing/trace_context ;;
    message_field) echo src/proxy/message_field src/base/buffer_chain src/base/slice ;;
    frame) echo src/http2/frame src/http2/session src/http2/flood src/http2/fields src/http2/hpack ;;
    hpack_decode | hpack_round_trip) echo src/http2/hpack src/http2/fields ;;
    server_session | client_session) echo src/http2 src/base tests/fuzz/support ;;
    proxy) echo src/base src/metrics src/concurrent src/cache src/runtime src/sync src/net src/http2 src/limits src/upstream \
      src/proxy tests/fuzz/support tests/support ;;
    config) echo src/config "src/[a-z0-9]+/options" ;;
    descriptor_set) echo src/config/descriptor_set ;;
    xds) echo src/discovery/xds src/upstream/options proto/envoy tests/support/xds_messages ;;
    dns_reply) echo src/net/dns src/discovery/dns ;;
    admin) echo src/admin proto ;;
    admin_http) echo src/admin/http ;;
    etcd) echo src/discovery/etcd src/config/parse_etcd src/config/parse_endpoint proto/etcd ;;
    jwt) echo src/proxy/identity ;;
    handover) echo src/handover src/server/handover src/server/processes src/server/clusters_handover src/metrics/registry proto/sluice/handover ;;
    *) echo "run.sh: sources_of does not know the target $1" >&2; exit 2 ;;
  esac
}

if [ "${1:-}" = --known ]; then
  failed=0 files=$(git ls-files)
  for source in tests/fuzz/*_fuzz.cc; do
    target=$(basename "$source" _fuzz.cc)
    paths=$(sources_of "$target") || exit
    for path in $paths; do
      if ! grep -qE "^${path//./\\.}([/._]|$)" <<<"$files"; then
        echo "run.sh: sources_of names '$path' for the target $target, and no file begins so" >&2
        failed=1
      fi
    done
  done
  exit "$failed"
fi

changed=no since= budget=
if [ "${1:-}" = --changed ]; then
  changed=yes since=${2?--changed needs a commit}
  shift 2
fi
if [ "${1:-}" = --within ]; then
  budget=${2?--within needs seconds}
  shift 2
fi
seconds=${1:-60}
shift || true
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
  for source in tests/fuzz/*_fuzz.cc; do targets+=("$(basename "$source" _fuzz.cc)"); done
fi
if [ "$changed" = yes ] && [ -n "$since" ]; then
  files=$(git diff --name-only "$since" --)
  all=("${targets[@]}") targets=()
  for target in "${all[@]}"; do
    paths="$(sources_of "$target") tests/fuzz/${target}_fuzz.cc tests/fuzz/corpus/$target/"
    for path in $paths; do
      if grep -qE "^${path//./\\.}([/._]|$)" <<<"$files"; then
        targets+=("$target")
        break
      fi
    done
  done
  echo "changed since $since: ${targets[*]:-no target}"
  if [ ${#targets[@]} -eq 0 ]; then exit 0; fi
fi

deploy/install-deps.sh fuzz
build=build/fuzz
cmake --preset fuzz >/dev/null
cmake --build "$build" --target "${targets[@]/%/_fuzz}"

dictionaries=$build/dict
mkdir -p "$dictionaries" "$build/found" "$build/log"
# The keys of the reference, so that the dictionary knows each new one.
grep -ohE '[a-z][a-z0-9_]*:' config/reference.yaml | sort -u | sed 's/.*/"&"/' >"$dictionaries/config.dict"
cp tests/fuzz/dict/*.dict "$dictionaries/"

export ASAN_OPTIONS=detect_stack_use_after_return=0:strict_string_checks=1
export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1

run_one() {
  local target=$1 grown=$build/corpus/$1 log=$build/log/$1.log options=()
  mkdir -p "$grown"
  [ -e "$dictionaries/$target.dict" ] && options+=("-dict=$dictionaries/$target.dict")
  # Forked children, one at a time: one that dies ends the run, one that grows is replaced.
  if ! "$build/bin/${target}_fuzz" -fork=1 -ignore_crashes=0 -ignore_ooms=0 -ignore_timeouts=0 -max_total_time="$seconds" \
      -timeout=10 -rss_limit_mb=2048 -max_len=4096 -artifact_prefix="$build/found/$target-" "${options[@]}" \
      "$grown" "tests/fuzz/corpus/$target" >"$log" 2>&1; then
    echo "$target: FAILED; the end of $log:"
    tail -n 60 "$log"
    echo "$target: replay with: $build/bin/${target}_fuzz FILE, where FILE is one of:"
    find "$build/found" -name "$target-*" -newer "$dictionaries/config.dict"
    return 1
  fi
  echo "$target: $(grep -oE '^#[0-9]+: cov: [0-9]+ ft: [0-9]+ corp: [0-9]+' "$log" | tail -n 1)"
}

jobs_max=${JOBS:-$(nproc)}
if [ -n "$budget" ]; then
  rounds=$(((${#targets[@]} + jobs_max - 1) / jobs_max))
  share=$(((budget - SECONDS) / rounds))
  if [ "$share" -lt 10 ]; then share=10; fi
  if [ "$share" -lt "$seconds" ]; then
    echo "${#targets[@]} targets within $budget s, of which the build took $SECONDS: $share s each instead of $seconds"
    seconds=$share
  fi
fi
failed=0
for target in "${targets[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge "$jobs_max" ]; do wait -n || failed=1; done
  run_one "$target" &
done
while [ -n "$(jobs -rp)" ]; do wait -n || failed=1; done
exit "$failed"
