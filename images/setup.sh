#!/usr/bin/env bash
# Makes sure that Rust and a Docker engine are there. On Debian and Ubuntu it offers to install the
# engine; elsewhere it says what to do. Changes nothing where both are there.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }

if ! command -v cargo >/dev/null; then
  say "Rust is missing. Install it by rustup (https://rustup.rs), open a new shell, and try again."
  exit 1
fi

if ! command -v cc >/dev/null; then
  say "A C compiler is missing: on Debian or Ubuntu, apt-get install build-essential."
  exit 1
fi

reachable() { docker version >/dev/null 2>&1; }

if reachable; then
  exit 0
fi

if command -v docker >/dev/null && docker version 2>&1 | grep -qi 'permission denied'; then
  say "The Docker engine runs, but you may not use it: sudo usermod -aG docker $(id -un), then log in again."
  exit 3
fi

# shellcheck disable=SC1091
. /etc/os-release 2>/dev/null || true
case " ${ID:-} ${ID_LIKE:-} " in
  *" debian "* | *" ubuntu "*) ;;
  *)
    say "No Docker engine is reachable. Install Docker Engine (https://docs.docker.com/engine/install),"
    say "start it, and try again."
    exit 3
    ;;
esac

as_root=()
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "No Docker engine is reachable, and installing one needs root:"
    say "  apt-get install docker.io && service docker start"
    exit 3
  fi
  as_root=(sudo)
fi

if command -v dockerd >/dev/null; then
  say "Docker is installed but does not run: starting it."
else
  say "No Docker engine is reachable. This installs Debian's package docker.io and starts it."
  if [ -t 0 ]; then
    read -r -p "Go on? [y/N] " answer
    [[ "$answer" =~ ^[Yy] ]] || exit 3
  fi
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" apt-get install -y -q --no-install-recommends docker.io docker-cli ||
    "${as_root[@]}" apt-get install -y -q --no-install-recommends docker.io
fi
"${as_root[@]}" service docker start >&2 || true

for _ in $(seq 1 30); do
  if reachable; then
    say "The Docker engine is up."
    exit 0
  fi
  sleep 1
done
say "The Docker engine did not start: see 'service docker status' and its log."
exit 3
