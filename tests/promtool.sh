#!/usr/bin/env bash
# Prints where promtool is, Prometheus's own checker of what is served to it. Where there is none,
# on Debian, it is taken from the package `prometheus`, which need not be installed for that.
set -euo pipefail

cache="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/promtool"
if command -v promtool; then
  exit 0
fi
if [ ! -x "$cache/promtool" ]; then
  command -v apt-get >/dev/null || { echo "promtool is not here, nor Debian's apt-get" >&2; exit 1; }
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
