#!/usr/bin/env bash
# Builds both images of the repository's Dockerfile, and runs them. No registry is needed: an image with this
# machine's Rust and all crates takes the place of the published one. PROFILE=dev compiles in less time, and leaves
# sizes unchecked. Where a part is missing it prints `skipped`, and ends with exit code 77. It removes what it made,
# except paceline/base.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=../images/docker-build.sh
. images/docker-build.sh

profile=${PROFILE:-release}
name=paceline-dockerfile-$$
scratch=$(mktemp -d)

say() { printf '%s\n' "$*" >&2; }
die() { say "Dockerfile: $*"; exit 1; }
skip() { say "Dockerfile: skipped, $*"; exit 77; }

clean() {
  {
    docker image rm "$name-sidecar" "$name-allocator"
    docker image rm "$name-builder"
    # The stages that compile have the label of the builder's image.
    docker image prune --force --filter "label=paceline.test=$name"
  } >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM

docker version >/dev/null 2>&1 || skip "no Docker engine is reachable."
command -v rustc >/dev/null || skip "Rust is missing."
sysroot=$(rustc --print sysroot)
host=$(rustc -vV | sed -n 's/^host: //p')
# The toolchain of a distribution is spread among its other files.
[ "$sysroot" != /usr ] || skip "Rust is not from rustup."
base=$(images/base-image.sh | tail -n 1) || skip "the image paceline/base cannot be made."

say "Collecting the crates."
cargo vendor --quiet --locked --versioned-dirs "$scratch/vendor" >/dev/null || skip "the crates cannot be fetched."
cat >"$scratch/config.toml" <<TOML
[net]
offline = true
[source.crates-io]
replace-with = "vendored"
[source.vendored]
directory = "/vendor"
TOML
cat >"$scratch/Dockerfile" <<DOCKERFILE
FROM $base
LABEL paceline.test=$name
RUN apt-get update -q && apt-get install -y -q --no-install-recommends gcc libc6-dev
COPY bin /usr/local/bin/
COPY lib /usr/local/lib/
COPY vendor /vendor/
COPY config.toml /usr/local/cargo/
ENV CARGO_HOME=/usr/local/cargo
DOCKERFILE
say "Making an image with Rust."
mapfile -t libraries < <(cd "$sysroot" && compgen -G 'lib/*.so*')
tar -c -C "$scratch" Dockerfile config.toml vendor \
  -C "$sysroot" bin/cargo bin/rustc "lib/rustlib/$host" "${libraries[@]}" |
  docker_build --quiet --force-rm --tag "$name-builder" - >/dev/null || skip "the image with Rust cannot be made."

# Compiles beside other work. BuildKit has no such option.
shares=(--cpu-shares 128)
if docker buildx version >/dev/null 2>&1; then shares=(); fi
# As a user builds it, but for the builder: $1 the image, then the arguments.
build() {
  local image=$1 began=$SECONDS
  shift
  docker_build --quiet --force-rm "${shares[@]}" --build-arg BUILDER="$name-builder" --build-arg PROFILE="$profile" \
    --tag "$name-$image" "$@" . >/dev/null || die "the $image does not build."
  say "The $image compiles in its image ($((SECONDS - began)) s)."
}
facts() { docker image inspect --format "$2" "$name-$1"; }
# Labels of an image name the version that its program has, and its size has a bound: $1 the image, $2 MiB.
labelled() {
  local version size title
  version=$(docker run --rm --network none "$name-$1" --version | awk '{print $2}')
  title=$(facts "$1" '{{index .Config.Labels "org.opencontainers.image.title"}}')
  [ "$title" = "Paceline $1" ] || die "the $1 has the title \"$title\"."
  [ "$(facts "$1" '{{index .Config.Labels "org.opencontainers.image.version"}}')" = "$version" ] ||
    die "the label of the $1 is not its version, $version: correct VERSION in Dockerfile."
  size=$(facts "$1" '{{.Size}}')
  [ "$profile" != release ] || ((size <= $2 << 20)) || die "the $1 has $size bytes, more than $2 MiB."
  say "$1 $version: $((size / 1024)) KiB"
}

build sidecar --target sidecar
labelled sidecar 10
[ "$(facts sidecar '{{.Config.User}} {{.Config.Healthcheck.Test}}')" = \
  "65532:65532 [CMD /paceline-sidecar healthcheck]" ] || die "the sidecar has another user or health check."
mkdir "$scratch/logs"
printf 'step %d loss 0.%d\n' 1 9 2 7 3 5 >"$scratch/logs/train.log"
chmod -R a+rX "$scratch"
said=$(docker run --rm --network none --read-only --cap-drop ALL --volume "$scratch/logs:/logs:ro" "$name-sidecar" \
  replay --json /logs/train.log)
[[ $said == *0.5* ]] || die "the sidecar reads no loss of a log: $said"

build allocator
labelled allocator 20
code=0
said=$(docker run --rm --network none "$name-allocator" simulate FC-3 2>&1) || code=$?
[[ $code = 2 && $said == *"cargo build"* ]] || die "the allocator's simulate ends with $code: $said"
mkdir -m 700 "$scratch/state"
said=$(docker run --rm --pid host --network host --cgroupns host --cap-add SYS_ADMIN --cap-add SYS_PTRACE \
  --cap-add SYS_NICE --security-opt apparmor=unconfined --volume /var/run/docker.sock:/var/run/docker.sock \
  --volume /sys/fs/cgroup:/sys/fs/cgroup --volume "$scratch/state:/var/lib/paceline" "$name-allocator" doctor) || true
# An allocator of this machine may have left what doctor calls an error.
for what in engine capabilities "control groups"; do
  grep -q "^ok  *$what " <<<"$said" || die "doctor finds an error: $said"
done
say "Both images run; doctor finds engine, capabilities and control groups."
