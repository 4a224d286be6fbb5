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
