#!/usr/bin/env bash
# Builds the sidecar as a static program and puts it into an image of its own, paceline/sidecar.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../images/docker-build.sh
. ../images/docker-build.sh

# Only the program itself is compiled and linked in its own way: the rest is that of other release builds.
# ../Dockerfile and python/dist.sh have the same flags. Beside a job stands only what serves it: the commands for people
# (`watch`, `serve`, `completions`, `man`) would take 3 MB of each image.
target=$(rustc -vV | sed -n 's/^host: //p')
build=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-../target}")
folder=$build/static-$target
mkdir -p "$folder"
"${CC:-cc}" -O2 -Wall -c lookup.c -o "$folder/lookup.o"
echo "Building the static program (minutes, the first time)." >&2
"${CARGO:-cargo}" rustc --release --locked --quiet --package paceline-sidecar --bin paceline-sidecar \
  --no-default-features --features forward,otlp -- \
  -C target-feature=+crt-static -C strip=symbols -C link-arg="$folder/lookup.o"
program=$build/release/paceline-sidecar
! ldd "$program" 2>/dev/null | grep -q '=>' || { echo "sidecar image: the program is not static" >&2; exit 1; }
version=$("$program" --version | awk '{print $2}')

context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
install -D "$program" "$context/rootfs/paceline-sidecar"
mkdir "$context/rootfs/state"
packed sidecar >"$context/Dockerfile"

before=$(docker image inspect --format '{{.Id}}' paceline/sidecar:latest 2>/dev/null || true)
docker_build --quiet --target sidecar --build-arg VERSION="$version" \
  --tag "paceline/sidecar:$version" --tag paceline/sidecar:latest "$context" >&2
forget_packed sidecar
# Remove the replaced image, unless a container still uses it.
[ "$before" = "$(docker image inspect --format '{{.Id}}' paceline/sidecar:latest)" ] ||
  docker image rm ${before:+"$before"} >/dev/null 2>&1 || true
echo "paceline/sidecar:$version" >&2
