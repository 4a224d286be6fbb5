#!/usr/bin/env bash
# Finds or fetches the training images and prints their folder, which containers are given.
set -euo pipefail
cd "$(dirname "$0")"
exec target/release/fetch-data "$@"
