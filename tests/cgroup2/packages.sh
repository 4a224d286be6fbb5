#!/usr/bin/env bash
# Installs the Debian packages of `make deb` in a virtual machine with systemd, has their service limit two
# jobs, and purges them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# shellcheck source=ready.sh
. tests/cgroup2/ready.sh "The test of the Debian packages is skipped"

"${CARGO:-cargo}" build --locked --bin toy-job
version="$(target/release/paceline --version | awk '{print $2}')"
tests/cgroup2/machine.sh --script tests/cgroup2/packages-inside.sh \
  dist/{paceline,paceline-sidecar}_"$version"-*_amd64.deb "${CARGO_TARGET_DIR:-target}/debug/toy-job"
