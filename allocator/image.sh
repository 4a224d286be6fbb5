#!/usr/bin/env bash
# Builds the allocator's image from target/release/paceline.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../images/docker-build.sh
. ../images/docker-build.sh

program=../target/release/paceline
version=$("$program" --version | awk '{print $2}')
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT

install -D "$program" "$context/rootfs/paceline"
# ldd prints absolute paths for the libraries and for the loader.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  install -D "$library" "$context/rootfs$library"
done
cp Dockerfile "$context"

docker_build --quiet --build-arg VERSION="$version" \
  --tag "paceline/allocator:$version" --tag paceline/allocator:latest "$context" >&2
echo "paceline/allocator:$version" >&2
