#!/usr/bin/env bash
# Installs what dist.sh made, offline, in a fresh environment of every Python of this machine, in clean
# containers of Debian, and from source; trains with it. Prints the seconds of each.
#
#   test-dist.sh [host] [containers] [source]
#
# REPEATS is how often each is measured (5), PYTHONS names further interpreters, RELEASES the releases of
# Debian. An absent part is reported as skipped.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../../images/docker-build.sh
. ../../images/docker-build.sh
root=$(realpath ../..)
dist=$root/dist
repeats=${REPEATS:-5}

say() { printf '%s\n' "$*" >&2; }
die() { say "test-dist: $*"; exit 1; }

(($#)) || set -- host containers source
compgen -G "$dist/paceline-*.whl" >/dev/null || die "no wheel in dist: run \`make dist\` first."

on_host() {
  local python version seen=" "
  for python in ${PYTHONS:-} python3 python3.{9..14}; do
    command -v "$python" >/dev/null || continue
    version=$("$python" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3])' 2>/dev/null) || continue
    [[ $seen != *" $version "* ]] || continue
    seen+="$version "
    if "$python" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
      "$python" tests/installed.py "$dist" "$repeats"
    else
      say "Python $version: skipped, it is older than 3.9 or its module ensurepip is missing."
    fi
  done
}

# A Debian with Python and nothing else, from a registry or from the mirror of this machine.
clean_image() {
  local release=$1 image=paceline/clean-python:$1 stage mirror
  if docker image inspect "$image" >/dev/null 2>&1; then
    echo "$image"
    return
  fi
  if [ -z "${no_registry:-}" ] && timeout 120 docker pull --quiet "debian:$release-slim" >/dev/null 2>&1; then
    docker_build --quiet --tag "$image" - >/dev/null <<DOCKERFILE
FROM debian:$release-slim
RUN apt-get update -q && apt-get install -y -q --no-install-recommends python3 python3-venv
DOCKERFILE
    echo "$image"
    return
  fi
  no_registry=yes
  command -v mmdebstrap >/dev/null || return 1
  stage=$(mktemp -d)
  chmod 755 "$stage"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' 2>/dev/null | grep -m 1 '/debian/\?$' || true)
  say "Making an image of Debian $release from its mirror."
  if mmdebstrap --quiet --variant=minbase --include=python3,python3-venv \
    --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' "$release" "$stage/base.tar" ${mirror:+"$mirror"} >&2; then
    docker import --change 'ENV LANG=C.UTF-8' "$stage/base.tar" "$image" >/dev/null && echo "$image"
  fi
  rm -rf "$stage"
}

in_containers() {
  local release image
  if ! docker version >/dev/null 2>&1; then
    say "containers: skipped, no Docker engine is reachable."
    return
  fi
  for release in ${RELEASES:-bullseye bookworm trixie}; do
    image=$(clean_image "$release") || true
    if [ -z "$image" ]; then
      say "Debian $release: skipped, no registry is reached, and mmdebstrap is missing or has failed."
      continue
    fi
    printf 'Debian %s: ' "$release"
    docker run --rm --network none --tmpfs /tmp:exec --volume "$dist:/dist:ro" --volume "$PWD/tests:/tests:ro" "$image" \
      python3 /tests/installed.py /dist "$repeats"
  done
}

# The source archive of the sidecar becomes a wheel, as pip makes it. Not optimized: that it compiles is
# tested here, and the build of the tests is used.
from_source() {
  local tools=$root/target/dist-tools stage archive began=$SECONDS
  if ! [ -x "$tools/bin/maturin" ]; then
    say "source: skipped, maturin is missing: run \`make dist\` first."
    return
  fi
  # The archives of the programs have the name of a platform, too.
  archive=$(compgen -G "$dist/paceline-*.tar.gz" | grep -v -- '-linux\.tar\.gz$')
  stage=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$stage'" EXIT
  PATH="$tools/bin:$PATH" CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}" \
    MATURIN_PEP517_ARGS="--profile dev --auditwheel skip" \
    "$tools/bin/pip" wheel --quiet --no-deps --no-index --no-build-isolation --wheel-dir "$stage" \
    "$archive" >&2
  python3 tests/installed.py "$stage" 1
  echo "source: the archive compiles and works ($((SECONDS - began)) s)"
}

for part; do
  case $part in
    host) on_host ;;
    containers) in_containers ;;
    source) from_source ;;
    *) die "invalid part \"$part\": expected host, containers or source." ;;
  esac
done
