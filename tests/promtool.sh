#!/usr/bin/env bash
# Prints the path of promtool, Prometheus's own checker. If it is missing, on Debian, it is extracted
# from the package `prometheus`, without installing it.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/promtool"
if command -v promtool; then
  exit 0
fi
if [ ! -x "$cache/promtool" ]; then
  command -v apt-get >/dev/null || { echo "promtool is missing, and so is Debian's apt-get" >&2; exit 1; }
  scratch="$(mktemp -d)"
  trap 'rm -rf "$scratch"' EXIT
  cd "$scratch"
  # The list of packages may be missing or too old, as on a fresh machine.
  apt-get download prometheus >&2 || { apt-get update -q >&2 && apt-get download prometheus >&2; }
  dpkg -x prometheus_*.deb unpacked
  mkdir -p "$cache"
  mv "$scratch/unpacked/usr/bin/promtool" "$cache/promtool"
fi
echo "$cache/promtool"
