#!/usr/bin/env bash
# Builds the allocator's image. Its program lacks the commands that compare policies (feature `bench`).
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../images/docker-build.sh
. ../images/docker-build.sh

# Both builds write target/release/paceline. The second build restores the full command there.
build() { (cd .. && "${CARGO:-cargo}" build --release --locked --target-dir target --bin paceline "$@" >&2); }
# Without the feature, only the command is compiled again: all else has the features of the full build.
build --no-default-features --features cri
program=$(mktemp)
install ../target/release/paceline "$program"
build
version=$("$program" --version | awk '{print $2}')
context=$(mktemp -d)
trap 'rm -rf "$context" "$program"' EXIT

install -D "$program" "$context/rootfs/paceline"
# ldd prints absolute paths for the libraries and for the loader.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  install -D "$library" "$context/rootfs$library"
done
packed allocator >"$context/Dockerfile"

docker_build --quiet --target allocator --build-arg VERSION="$version" \
  --tag "paceline/allocator:$version" --tag paceline/allocator:latest "$context" >&2
forget_packed allocator
echo "paceline/allocator:$version" >&2
