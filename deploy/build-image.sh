#!/usr/bin/env bash
# Makes a container image of a finished release build, without a registry and without a container engine: OCI's layout in build/image,
# which podman, skopeo and buildah take as oci:build/image:VERSION.
#   deploy/build-image.sh [OUT]
#   SLUICE_BUILD=build/release   the build whose programs are in it
set -euo pipefail
cd "$(dirname "$0")/.."

build=${SLUICE_BUILD:-build/release}
for program in sluiced sluicectl; do
  [ -x "$build/bin/$program" ] || { echo "build-image: $build/bin/$program is not there: build it first" >&2; exit 1; }
done
version=$(sed -n 's/^project(sluice VERSION \([0-9.]*\).*/\1/p' CMakeLists.txt)
exec python3 deploy/image.py "$build/bin" config/first.yaml "${1:-build/image}" "$version"
