#!/usr/bin/env bash
# Ensures that there is a small image of this machine's own Debian or Ubuntu release, and prints
# its name. The workloads are built on this machine, so the image needs the same C library or a
# newer one. It comes from a registry where one is reached, else from the distribution's mirror.
set -euo pipefail

# shellcheck source=docker-build.sh
. "$(dirname "${BASH_SOURCE[0]}")/docker-build.sh"

say() { printf '%s\n' "$*" >&2; }
die() { say "base image: $*"; exit 1; }

# shellcheck disable=SC1091
. /etc/os-release 2>/dev/null || true
case "${ID:-}" in
  debian | ubuntu) distribution="$ID" release="${VERSION_CODENAME:-}" ;;
  *) distribution=debian release="" ;;
esac
[ -n "$release" ] || { distribution=debian release=trixie; }
[ "$distribution" = debian ] && published="debian:$release-slim" || published="ubuntu:$release"
base="paceline/base:$release"
# Certificates, so that a job can fetch its images itself; the C++ library of libtorch.
packages=ca-certificates,libstdc++6

exists() { docker image inspect "$1" >/dev/null 2>&1; }

if exists "$base"; then
  printf '%s\n' "$base"
  exit 0
fi

from_registry() {
  if ! exists "$published"; then
    say "Pulling $published."
    timeout 300 docker pull --quiet "$published" >&2 || return 1
  fi
  say "Adding packages to $published."
  docker_build --quiet --tag "$base" - >/dev/null <<DOCKERFILE
FROM $published
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends ${packages//,/ } \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
DOCKERFILE
}

# The mirror that this machine's own packages come from, as lines for sources.list; nothing on other
# distributions, where mmdebstrap knows Debian's.
sources() {
  local uri keyring=""
  [ "${ID:-}" = "$distribution" ] || return 0
  uri="$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 2>/dev/null |
    awk -v release="$release" '$2 == release { print $1; exit }')"
  [ -n "$uri" ] || return 0
  keyring="/usr/share/keyrings/$distribution-archive-keyring.gpg"
  [ -e "$keyring" ] && keyring="[signed-by=$keyring] " || keyring=""
  printf 'deb %s%s %s main\n' "$keyring" "$uri" "$release"
}

need_mmdebstrap() {
  command -v mmdebstrap >/dev/null && return 0
  local as_root=()
  if [ "$(id -u)" != 0 ]; then
    sudo -n true 2>/dev/null || return 1
    as_root=(sudo -n)
  fi
  command -v apt-get >/dev/null || return 1
  say "Installing mmdebstrap."
  "${as_root[@]}" apt-get update -q >&2 &&
    "${as_root[@]}" apt-get install -y -q --no-install-recommends mmdebstrap >&2
}

from_mirror() {
  local stage source
  need_mmdebstrap || die "no registry can be reached, and mmdebstrap is missing: install it
  (on Debian and Ubuntu, as root: apt-get install mmdebstrap uidmap)."
  stage="$(mktemp -d)"
  # mmdebstrap works as another user in some of its modes.
  chmod 755 "$stage"
  # shellcheck disable=SC2064
  trap "rm -rf '$stage'" EXIT
  trap 'exit 130' INT TERM
  say "Making an image of $distribution $release from its mirror: half a minute."
  source="$(sources)"
  mmdebstrap --quiet --variant=minbase --include="$packages" \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-include=/usr/share/doc/*/copyright' \
    --dpkgopt='path-exclude=/usr/share/locale/*' \
    "$release" "$stage/base.tar" ${source:+"$source"} >&2 ||
    die "mmdebstrap failed. As another user than root it needs the package uidmap."
  docker import --change 'ENV LANG=C.UTF-8' --change 'CMD ["/bin/bash"]' \
    "$stage/base.tar" "$base" >/dev/null
}

from_registry || from_mirror
say "The image $base is ready."
printf '%s\n' "$base"
