#!/usr/bin/env bash
# Finds or fetches the training images and prints their folder, for containers to mount.
set -euo pipefail
cd "$(dirname "$0")"
program=target/release/fetch-data
# It needs no libtorch.
[ -x "$program" ] || "${CARGO:-cargo}" build --release --locked --package paceline-fetch >&2
exec "$program" "$@"
