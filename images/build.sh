#!/usr/bin/env bash
# Builds the workloads and their image, paceline/workloads.
set -euo pipefail
cd "$(dirname "$0")"

version=0.1.0
say() { printf '%s\n' "$*" >&2; }

command -v c++ >/dev/null || {
  say "A C++ compiler is missing: on Debian or Ubuntu, apt-get install build-essential."
  exit 1
}

LIBTORCH="$(./libtorch.sh | tail -n 1)"
export LIBTORCH
say "Building the workloads (minutes, the first time)."
"${CARGO:-cargo}" build --release --locked

base="$(./base-image.sh | tail -n 1)"

# The engine is sent its whole context: only what goes into the image, hard-linked where it can be.
context=.build/context
rm -rf "$context"
mkdir -p "$context/libtorch" "$context/bin"
for part in lib LICENSE; do
  [ -e "$LIBTORCH/$part" ] || continue
  cp -a --link "$LIBTORCH/$part" "$context/libtorch/" 2>/dev/null ||
    cp -a --force "$LIBTORCH/$part" "$context/libtorch/"
done
cp target/release/{vae,mnist,gru,resnet50} "$context/bin/"
cp Dockerfile "$context/"

say "Building the image."
before="$(docker image inspect --format '{{.Id}}' paceline/workloads:latest 2>/dev/null || true)"
docker build --quiet --build-arg BASE="$base" \
  --tag "paceline/workloads:$version" --tag paceline/workloads:latest "$context" >&2
rm -rf "$context"
# What was replaced goes, unless a container still uses it.
[ "$before" = "$(docker image inspect --format '{{.Id}}' paceline/workloads:latest)" ] ||
  docker image rm ${before:+"$before"} >/dev/null 2>&1 || true
say "The image paceline/workloads:$version is ready."
