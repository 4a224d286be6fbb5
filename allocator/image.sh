#!/usr/bin/env bash
# Builds the allocator's image from target/release/paceline.
set -euo pipefail
cd "$(dirname "$0")"

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

docker build --quiet --build-arg VERSION="$version" \
  --tag "paceline/allocator:$version" --tag paceline/allocator:latest "$context" 2>&1 |
  grep -v -e '^DEPRECATED' -e '^ *Install the buildx' -e 'docs.docker.com' -e '^$' >&2 || true
docker image inspect "paceline/allocator:$version" >/dev/null
echo "paceline/allocator:$version" >&2
