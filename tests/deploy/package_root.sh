#!/usr/bin/env bash
# Makes build/package-root: a Debian 12 of its own, with the libraries that the package of Sluice depends on, for package_test.py. Needs
# root, debootstrap and a mirror; does nothing where the root is there.
set -euo pipefail
cd "$(dirname "$0")/../.."
root=build/package-root
[ ! -e "$root/.complete" ] || exit 0
rm -rf "$root"
mkdir -p build
mirror=$(sed -n 's/^URIs: \(http[^ ]*\/debian\)$/\1/p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
libraries=libgrpc++1.51,libprotobuf32,libspdlog1.10,libyaml-cpp0.7,libc-ares2,libssl3
debootstrap --variant=minbase "--include=systemd-standalone-sysusers,ca-certificates,$libraries" bookworm "$root" ${mirror:+"$mirror"}
touch "$root/.complete"
