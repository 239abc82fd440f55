#!/usr/bin/env bash
# Installs what building and testing Sluice needs from Debian 12. Does nothing, and needs no root, when all is there.
# With the argument "bench": also the libraries that tests/bench compares with. With "fuzz": also clang with libFuzzer. With "lint": also
# what tests/lint.sh runs.
set -euo pipefail

packages=(
  # build
  cmake ninja-build g++ ccache pkg-config
  # libraries; docs/dependencies.md says what each is for
  libboost1.81-dev libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libspdlog-dev libyaml-cpp-dev libabsl-dev libssl-dev libxxhash-dev
  # tests only
  libgtest-dev libgmock-dev libbenchmark-dev libnghttp2-dev python3 python3-grpcio python3-protobuf
)

if [ "${1:-}" = bench ]; then
  packages+=(librocksdb-dev liburcu-dev)
elif [ "${1:-}" = fuzz ]; then
  packages+=(clang-14 libclang-rt-14-dev)
elif [ "${1:-}" = lint ]; then
  packages+=(clang-tidy-14 cppcheck)
fi

fail() {
  echo "install-deps: $*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    [ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || echo "$package"
  done
}

command -v dpkg-query >/dev/null || fail "this is not a Debian system: install the equivalents of: ${packages[*]}"
mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -gt 0 ] || exit 0

echo "install-deps: installing ${missing[*]}"
as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || fail "needs root or sudo to install: ${missing[*]}"
  as_root=(sudo)
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q ||
  fail "apt-get update failed: is there a network, and a Debian mirror in /etc/apt?"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install: ${missing[*]} (Sluice is built on Debian 12, bookworm)"
mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] || fail "still missing after the installation: ${missing[*]}"
