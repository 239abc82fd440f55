#!/usr/bin/env bash
# Builds sluice_VERSION_ARCH.deb from what is committed, and puts it into the folder OUT (default: build/deb). The tree stays as it is.
#   deploy/build-deb.sh [OUT]
#   SLUICE_BUILD=build/release   take the programs of that finished build instead of compiling for twenty minutes
#   SLUICE_DEB_VERSION=0.1.0+1   another version than that of CMakeLists.txt
#   SLUICE_TREE=worktree         what lies in the tree, of the files that git knows, instead of what is committed
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
  echo "build-deb: $*" >&2
  exit 1
}
for tool in dh dpkg-buildpackage git python3 cmake; do
  command -v "$tool" >/dev/null || fail "$tool is missing: deploy/install-deps.sh packages"
done
out=$(realpath -m "${1:-build/deb}")
mkdir -p "$out"
if [ -n "${SLUICE_BUILD:-}" ]; then
  SLUICE_BUILD=$(realpath "$SLUICE_BUILD")
  for program in sluiced sluicectl; do
    [ -x "$SLUICE_BUILD/bin/$program" ] || fail "$SLUICE_BUILD/bin/$program is not there: build it first"
  done
  export SLUICE_BUILD
fi
version=${SLUICE_DEB_VERSION:-$(sed -n 's/^project(sluice VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)}

work=$(mktemp -d "${TMPDIR:-/tmp}/sluice-deb.XXXXXX")
trap 'rm -rf "$work"' EXIT
mkdir "$work/sluice-$version"
if [ "${SLUICE_TREE:-}" = worktree ]; then
  git ls-files -z --cached --others --exclude-standard | tar --null --ignore-failed-read -T - -c | tar -x -C "$work/sluice-$version"
  date=$(date -R)
else
  git archive HEAD | tar -x -C "$work/sluice-$version"
  date=$(git log -1 --format=%cD)
fi
cd "$work/sluice-$version"
cp -r deploy/debian debian
cat >debian/changelog <<END
sluice ($version) unstable; urgency=medium

  * Version $version; /usr/share/doc/sluice/changelog.gz has what changed.

 -- Sluice maintainers <maintainers@sluice.example>  $date
END
flags=(-b -us -uc)
# A build that is finished needs no compiler and no headers.
if [ -n "${SLUICE_BUILD:-}" ]; then flags+=(-d); fi
SOURCE_DATE_EPOCH=$(date -d "$date" +%s) DEB_BUILD_OPTIONS="noautodbgsym ${DEB_BUILD_OPTIONS:-}" \
  dpkg-buildpackage "${flags[@]}" >"$work/log" 2>&1 || {
  tail -40 "$work/log" >&2
  fail "dpkg-buildpackage failed"
}
cp "$work"/sluice_*.deb "$out/"
basename -a "$work"/sluice_*.deb | sed "s|^|$out/|"
