#!/usr/bin/env bash
# Installs what building and testing Sluice needs from Debian 12. Does nothing, and needs no root, when all is there.
# With the argument "bench": also the libraries that tests/bench compares with. With "peers": also the proxies and tools of
# tests/bench/peers and tests/faults/matrix. With "fuzz": also clang with libFuzzer. With "lint": also what tests/lint.sh runs.
# With "xds": also node and npm, which tests/xds/install.sh needs.
# With "browser": also Chromium and a parser of HTML, for tests/browser.
# With "etcd": also etcd's server and client, for tests/faults and deploy/etcd-demo.sh; no service of it is started or enabled.
# With "packages": also what deploy/build-deb.sh, deploy/build-image.sh and their tests need.
# With "prometheus": also promtool, which tests the alert rules; Prometheus itself is not started or enabled.
set -euo pipefail

installed() {
  [ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# Debian 12 has two versions of Boost, of which only one can be installed. Both will do: the one that is there stays.
boost=libboost1.81-dev
if installed libboost1.74-dev; then boost=libboost1.74-dev; fi

packages=(
  # build
  cmake ninja-build g++ ccache pkg-config
  # libraries; docs/dependencies.md says what each is for
  "$boost" libgrpc++-dev protobuf-compiler-grpc libprotobuf-dev protobuf-compiler
  libspdlog-dev libyaml-cpp-dev libcli11-dev libabsl-dev libssl-dev libxxhash-dev libc-ares-dev nlohmann-json3-dev
  # tests only
  libgtest-dev libgmock-dev libbenchmark-dev libnghttp2-dev python3 python3-grpcio python3-protobuf
  python3-prometheus-client clang-format-14
)

if [ "${1:-}" = bench ]; then
  packages+=(librocksdb-dev liburcu-dev)
elif [ "${1:-}" = peers ]; then
  packages+=(haproxy nginx nghttp2-proxy nghttp2-client caddy linux-perf iproute2 util-linux openssl)
elif [ "${1:-}" = fuzz ]; then
  packages+=(clang-14 libclang-rt-14-dev)
elif [ "${1:-}" = lint ]; then
  packages+=(clang-tidy-14 cppcheck)
elif [ "${1:-}" = xds ]; then
  # Another build of node, which brings its npm along, will do too.
  if ! command -v node >/dev/null || ! command -v npm >/dev/null; then packages+=(nodejs npm); fi
elif [ "${1:-}" = browser ]; then
  packages+=(chromium fonts-dejavu-core python3-html5lib)
elif [ "${1:-}" = etcd ]; then
  packages+=(etcd-server etcd-client iproute2 openssl)
elif [ "${1:-}" = packages ]; then
  packages+=(debhelper dpkg-dev lintian debootstrap ca-certificates python3-yaml)
elif [ "${1:-}" = prometheus ]; then
  packages+=(prometheus)
fi

fail() {
  echo "install-deps: $*" >&2
  exit 1
}

missing_packages() {
  local package
  for package in "${packages[@]}"; do
    installed "$package" || echo "$package"
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
# Debian's packages of servers start them and enable them at boot, unless told not to: nothing that listens is wanted here. An answer of
# 101 means "forbidden" (invoke-rc.d); a policy that the system has stays.
policy=/usr/sbin/policy-rc.d
services=()
for package in "${missing[@]}"; do
  if [ "$package" = etcd-server ]; then services+=(etcd.service); fi
  if [ "$package" = prometheus ]; then services+=(prometheus.service); fi
done
if [ ${#services[@]} -gt 0 ] && [ ! -e "$policy" ]; then
  printf '#!/bin/sh\nexit 101\n' | "${as_root[@]}" tee "$policy" >/dev/null
  "${as_root[@]}" chmod 755 "$policy"
  trap '"${as_root[@]}" rm -f "$policy"' EXIT
fi
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" ||
  fail "apt-get could not install: ${missing[*]} (Sluice is built on Debian 12, bookworm)"
if [ ${#services[@]} -gt 0 ] && command -v systemctl >/dev/null; then
  "${as_root[@]}" systemctl disable -q "${services[@]}" || true
fi
mapfile -t missing < <(missing_packages)
[ ${#missing[@]} -eq 0 ] || fail "still missing after the installation: ${missing[*]}"
