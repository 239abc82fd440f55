# The options of path_instructions.sh and path_rmws.sh, which source this file with their arguments. Sets build, bench and
# variants. --calls, --profile and --lines are known only to a script that has set `calls` before. --help prints the script's head.
build=build/release variants= profile= lines=
wrong() { echo "${0##*/}: $1" >&2; exit 2; }
while [ $# -gt 0 ]; do
  case $1${calls+ counts} in
    --build | --build\ *) [ $# -gt 1 ] || wrong "--build needs a folder"; build=$2; shift ;;
    --calls\ *) [ $# -gt 1 ] || wrong "--calls needs a number"; calls=$2; shift ;;
    --profile\ *) profile=1 ;;
    --lines\ *) [ $# -gt 1 ] || wrong "--lines needs a pattern"; lines=$2; shift ;;
    -h | --help | -h\ * | --help\ *) sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) wrong "unknown argument $1" ;;
    *) variants="$variants $1" ;;
  esac
  shift
done
bench=$build/bin/path_bench
[ -x "$bench" ] || wrong "no $bench; build it: ninja -C $build path_bench"
