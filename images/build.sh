#!/usr/bin/env bash
# Builds the workloads and their images: paceline/workloads, which holds all, and one for each.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=docker-build.sh
. ./docker-build.sh

version=0.1.0
say() { printf '%s\n' "$*" >&2; }

command -v c++ >/dev/null || {
  say "A C++ compiler is missing: on Debian or Ubuntu, apt-get install build-essential."
  exit 1
}

LIBTORCH="$(./libtorch.sh | tail -n 1)"
export LIBTORCH
say "Building the workloads (minutes, the first time)."
"${CARGO:-cargo}" build --release --locked --target-dir target

base="$(./base-image.sh | tail -n 1)"

# The engine receives the whole context, so it holds only the files of the image, hard-linked if possible.
context=.build/context
rm -rf "$context"
mkdir -p "$context/libtorch" "$context/bin"
for part in lib LICENSE; do
  [ -e "$LIBTORCH/$part" ] || continue
  cp -a --link "$LIBTORCH/$part" "$context/libtorch/" 2>/dev/null ||
    cp -a --force "$LIBTORCH/$part" "$context/libtorch/"
done
workloads=(vae mnist gru resnet50)
(cd target/release && cp "${workloads[@]}" "../../$context/bin/")
cp healthcheck.sh "$context/bin/healthcheck"
cp Dockerfile "$context/"

say "Building the images."
id() { docker image inspect --format '{{.Id}}' "$1" 2>/dev/null || true; }
# Builds an image from the arguments and tags it as $1.
build() {
  local image=$1 before
  shift
  before="$(id "$image:latest")"
  docker_build --quiet --tag "$image:$version" --tag "$image:latest" "$@" >&2
  [ "$before" = "$(id "$image:latest")" ] || replaced=(${before:+"$before"} "${replaced[@]}")
}
replaced=()
build paceline/workloads --build-arg BASE="$base" --build-arg VERSION="$version" "$context"
rm -rf "$context"
# One for each workload, which adds only the command.
for workload in "${workloads[@]}"; do
  build "paceline/$workload" --label org.opencontainers.image.title="Paceline: $workload" - \
    <<<"$(printf 'FROM paceline/workloads:%s\nENTRYPOINT ["%s"]\nCMD []' "$version" "$workload")"
done
# Replaced images are removed, children before their parent, unless a container still uses them.
for image in "${replaced[@]}"; do
  docker image rm "$image" >/dev/null 2>&1 || true
done
size="$(docker image inspect --format '{{.Size}}' paceline/workloads:latest)"
say "The image paceline/workloads:$version is ready, $((size / 1000000)) MB; of the same layers: ${workloads[*]/#/paceline/}."
