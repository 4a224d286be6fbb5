#!/usr/bin/env bash
# Builds the images of the Python workloads, paceline/python-torch and paceline/python-keras.
#
#   build.sh [torch] [keras]
#
# pip fetches the packages on this machine, for the Python of the images, so that its configuration
# and its certificates apply; none of that gets into an image. PACELINE_TORCH_INDEX names the index
# of PyTorch's builds for the CPU. If it cannot be reached, the build for CUDA is taken from PyPI,
# with those of CUDA's libraries that it loads.
set -euo pipefail
cd "$(dirname "$0")"
# shellcheck source=../docker-build.sh
. ../docker-build.sh

version=0.1.0
index=${PACELINE_TORCH_INDEX:-https://download.pytorch.org/whl/cpu}
torch=$(grep '^torch==' requirements/torch-cuda.in)

say() { printf '%s\n' "$*" >&2; }
die() { say "Python images: $*"; exit 1; }
exists() { docker image inspect "$1" >/dev/null 2>&1; }
build() { docker_build --quiet "$@"; }

(($#)) || set -- torch keras
for framework; do
  [[ $framework == torch || $framework == keras ]] || die "invalid framework \"$framework\": expected torch or keras."
done
machine=$(uname -m)
[[ $machine == x86_64 || $machine == aarch64 ]] || die "no packages for $machine: expected x86_64 or aarch64."
python3 -m pip --version >/dev/null 2>&1 ||
  die "pip is missing: on Debian or Ubuntu, apt-get install python3-pip."
exists paceline/sidecar:latest || ../../sidecar/image.sh

base=$(../base-image.sh | tail -n 1)
mkdir -p ../.build
context=$(mktemp -d -p "$PWD/../.build")
trap 'rm -rf "$context"' EXIT
trap 'exit 130' INT TERM
cp Dockerfile.packages "$context"

# Installs for the Python of the images, not for this machine's.
install() {
  local dots=${python/./} platforms=()
  for libc in $(seq 28 -1 17); do
    platforms+=(--platform "manylinux_2_${libc}_$machine")
  done
  PIP_ROOT_USER_ACTION=ignore python3 -m pip install --quiet --no-deps --no-cache-dir --no-compile \
    --only-binary :all: --implementation cp --python-version "$python" \
    --abi "cp$dots" --abi abi3 --abi none \
    "${platforms[@]}" --platform "manylinux2014_$machine" --platform "manylinux2010_$machine" \
    --target "$context/packages" --upgrade "$@" >&2
}

install_torch() {
  say "Asking $index for $torch."
  if ! install --index-url "$index" --retries 0 --timeout 15 "$torch" 2>"$context/refusal"; then
    say "$(tail -n 1 "$context/refusal")"
    [ -z "${PACELINE_TORCH_INDEX:-}" ] || die "PACELINE_TORCH_INDEX has no $torch."
    say "Taking PyPI's build for CUDA: 2 GB to fetch."
    install --require-hashes --requirement requirements/torch-cuda.txt
  fi
}

# Builds the image of a framework's packages, unless it exists already, and sets `packages`.
packages_of() {
  local framework=$1 python key
  key=$({ docker image inspect --format '{{.Id}}' "$base"
    echo "$machine $index $torch"
    declare -f install install_torch packages_of
    cat Dockerfile.packages requirements/"$framework"*.txt; } | sha256sum | cut -c 1-12)
  packages=paceline/python-$framework-packages:$key
  ! exists "$packages" || return 0

  rm -rf "$context/packages"
  mkdir "$context/packages"
  python=$(docker run --rm --network none "$(build --target python --build-arg BASE="$base" \
    --file "$context/Dockerfile.packages" "$context")" \
    python -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  say "Fetching the packages of $framework for Python $python."
  [ "$framework" != torch ] || install_torch
  install --require-hashes --requirement "requirements/$framework.txt"
  # Commands would name this machine's Python; headers are for compilers, and there is none.
  rm -rf "$context"/packages/bin "$context"/packages/*/include
  say "Building the image of the packages."
  build --build-arg BASE="$base" --build-arg PYTHON="$python" --tag "$packages" \
    --file "$context/Dockerfile.packages" "$context" >&2
  rm -rf "$context/packages"
}

scripts=$context/scripts
mkdir "$scripts"
cp ./*.py Dockerfile.torch Dockerfile.keras "$scripts"
for framework; do
  packages_of "$framework"
  image=paceline/python-$framework
  before=$(docker image inspect --format '{{.Id}}' "$image:latest" 2>/dev/null || true)
  build --build-arg PACKAGES="$packages" --build-arg VERSION="$version" \
    --tag "$image:$version" --tag "$image:latest" --file "$scripts/Dockerfile.$framework" \
    "$scripts" >/dev/null
  # Replaced images are removed, unless a container still uses them.
  [ "$before" = "$(docker image inspect --format '{{.Id}}' "$image:latest")" ] ||
    docker image rm ${before:+"$before"} >/dev/null 2>&1 || true
  for old in $(docker image ls --format '{{.Repository}}:{{.Tag}}' "${packages%:*}"); do
    [ "$old" = "$packages" ] || docker image rm "$old" >/dev/null
  done
done
for framework; do
  size=$(docker image inspect --format '{{.Size}}' "paceline/python-$framework:latest")
  say "The image paceline/python-$framework:$version is ready: $((size / 1000000)) MB."
done
