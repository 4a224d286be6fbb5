#!/usr/bin/env bash
# Builds the sidecar as a static program and puts it into an image of its own, paceline/sidecar.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../images/docker-build.sh
. ../images/docker-build.sh

# With an explicit target, the flags apply only to the program: build scripts and macros stay
# dynamic. The program is built in its own folder, beside that of `cargo build --release`.
target=$(rustc -vV | sed -n 's/^host: //p')
folder=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-../target}/$target/release")
mkdir -p "$folder"
"${CC:-cc}" -O2 -Wall -c lookup.c -o "$folder/lookup.o"
echo "Building the static program (minutes, the first time)." >&2
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" CARGO_PROFILE_RELEASE_STRIP=symbols \
  "${CARGO:-cargo}" rustc --release --locked --quiet --target "$target" --bin paceline-sidecar -- \
  -C link-arg="$folder/lookup.o"
program=$folder/paceline-sidecar
version=$("$program" --version | awk '{print $2}')

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
install -D "$program" "$context/rootfs/paceline-sidecar"
mkdir "$context/rootfs/state"
cp Dockerfile "$context"

before=$(docker image inspect --format '{{.Id}}' paceline/sidecar:latest 2>/dev/null || true)
docker_build --quiet --build-arg VERSION="$version" \
  --tag "paceline/sidecar:$version" --tag paceline/sidecar:latest "$context" >&2
# Remove the replaced image, unless a container still uses it.
[ "$before" = "$(docker image inspect --format '{{.Id}}' paceline/sidecar:latest)" ] ||
  docker image rm ${before:+"$before"} >/dev/null 2>&1 || true
echo "paceline/sidecar:$version" >&2
