# For the run.sh of tests/bench/peers and of tests/faults/matrix, which source it: takes --build DIR and --no-build out of "$@",
# brings that build up to date, and looks for the programs and for Python.
#
# In: $targets, what to build; $programs, what must be in its bin. Out: $repo, $build, $python, and the rest of "$@".
repo=$(cd "$(dirname "$0")/../../.." && pwd)
build=$repo/build/release stale=1
n=$#
while [ "$n" -gt 0 ]; do
  arg=$1
  shift
  n=$((n - 1))
  case $arg in
    --build)
      [ "$n" -gt 0 ] || { echo "run.sh: --build needs a folder" >&2; exit 2; }
      build=$(cd "$1" 2>/dev/null && pwd) || { echo "run.sh: no folder $1" >&2; exit 2; }
      shift
      n=$((n - 1)) ;;
    --no-build) stale= ;;
    *) set -- "$@" "$arg" ;;
  esac
done
if [ -n "$stale" ]; then
  [ -f "$build/build.ninja" ] || (cd "$repo" && cmake --preset release -B "$build") >&2 || exit 1
  # shellcheck disable=SC2086  # names without blanks
  cmake --build "$build" --target $targets >&2 || exit 1
fi
for program in $programs; do
  [ -x "$build/bin/$program" ] || { echo "run.sh: no $program in $build/bin" >&2; exit 2; }
done
python=/usr/bin/python3  # the one that has the distribution's grpcio
[ -x "$python" ] || python=python3
