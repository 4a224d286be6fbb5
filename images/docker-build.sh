# shellcheck shell=bash
# docker_build ARGUMENTS…: `docker build`, without the notice that the engine's client prints where the
# component buildx is missing. Its output, its errors and its exit code are those of `docker build`.
# For scripts that build images, which source this file.
docker_build() {
  if docker buildx version >/dev/null 2>&1; then
    docker build "$@"
    return
  fi
  # The notice is one line, the indented ones after it, and an empty one.
  (
    set -o pipefail
    { docker build "$@" 2>&1 >&3 3>&- | sed --unbuffered \
      -e '/^DEPRECATED: The legacy builder/ {' -e ':next' -e '$d' -e 'N' -e 's/^.*\n//' \
      -e '/^  /b next' -e '/^$/d' -e '}' >&2 3>&-; } 3>&1
  )
}

# packed NAME: prints a Dockerfile for a program that is compiled already. It is the stage NAME of the repository's
# Dockerfile, with rootfs/ of the context in place of the stage that compiles. Build it with `--target NAME`, which
# fails if there is no such stage.
packed() {
  local dockerfile
  dockerfile=$(dirname "${BASH_SOURCE[0]}")/../Dockerfile
  printf 'FROM scratch AS compiled-%s\nCOPY rootfs/ /rootfs/\nLABEL paceline.packed=%s\n\n' "$1" "$1"
  sed -n "/^FROM scratch AS $1\$/,/^\$/p" "$dockerfile"
}

# forget_packed NAME: removes the first stage of `packed NAME`, which Docker's older builder keeps as an image.
forget_packed() { docker image prune --force --filter "label=paceline.packed=$1" >/dev/null; }
