#!/usr/bin/env bash
# Finds libtorch 2.13 for the CPU, or fetches it into the user's cache, and prints its folder on
# standard output. The C++ library inside Python's own package is the same for every Python, and
# its checksums are published with it.
#
#   LIBTORCH=DIR                      use this one, if its version fits
#   LIBTORCH_URL=U LIBTORCH_SHA256=H  fetch this zip archive of libtorch instead of the package
set -euo pipefail

version=2.13.0
here="$(cd "$(dirname "$0")" && pwd)"
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paceline"
target="$cache/libtorch-$version"

say() { printf '%s\n' "$*" >&2; }
die() { say "libtorch: $*"; exit 1; }

if [ -n "${LIBTORCH:-}" ]; then
  found="$(cat "$LIBTORCH/build-version" 2>/dev/null || echo none)"
  [[ "$found" == 2.13.* ]] || die "LIBTORCH=$LIBTORCH has version $found; 2.13 is needed."
  printf '%s\n' "$LIBTORCH"
  exit 0
fi

if [ -f "$target/build-version" ]; then
  printf '%s\n' "$target"
  exit 0
fi

command -v python3 >/dev/null || die "python3 is missing: on Debian or Ubuntu, apt-get install python3."

mkdir -p "$cache"
stage="$(mktemp -d -p "$cache")"
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM

# Fetches the archive of LIBTORCH_URL and unpacks it as it is.
from_archive() {
  [ -n "${LIBTORCH_SHA256:-}" ] || die "LIBTORCH_URL needs LIBTORCH_SHA256, the archive's checksum."
  say "Fetching $LIBTORCH_URL."
  curl --fail --location --silent --show-error --output "$stage/libtorch.zip" "$LIBTORCH_URL" ||
    die "cannot fetch $LIBTORCH_URL."
  echo "$LIBTORCH_SHA256  $stage/libtorch.zip" | sha256sum --check --quiet >&2 ||
    die "the archive has another checksum than LIBTORCH_SHA256."
  python3 -m zipfile -e "$stage/libtorch.zip" "$stage"
  [[ "$(cat "$stage/libtorch/build-version")" == 2.13.* ]] || die "the archive is not libtorch 2.13."
}

# Extracts the headers and the libraries for the CPU from the Python wheels.
from_wheels() {
  local machine
  machine="$(uname -m)"
  case "$machine" in
    x86_64 | aarch64) ;;
    *) die "no package for $machine: set LIBTORCH, or LIBTORCH_URL and LIBTORCH_SHA256." ;;
  esac
  python3 -m pip --version >/dev/null 2>&1 ||
    die "pip is missing: on Debian or Ubuntu, apt-get install python3-pip."

  say "Fetching libtorch $version (about 540 MB, kept in $cache)."
  python3 -m pip download --no-deps --no-cache-dir --require-hashes --only-binary :all: \
    --implementation cp --python-version 3.11 --abi cp311 --abi none \
    --platform "manylinux_2_28_$machine" --platform "manylinux_2_25_$machine" \
    --platform "manylinux2014_$machine" --platform "manylinux_2_17_$machine" \
    --dest "$stage/wheels" --requirement "$here/libtorch.lock" >&2 ||
    die "cannot fetch the packages."

  say "Unpacking."
  python3 - "$stage/wheels" "$stage/libtorch" <<'PYTHON'
import pathlib, re, shutil, sys, zipfile

wheels, target = map(pathlib.Path, sys.argv[1:])
# Files for GPUs or for Python are left out, and so is libtorch.so, which only names the others.
left_out = re.compile(r"lib(torch|shm|caffe2_nvrtc|c10_cuda|torch_(?!cpu).*)\.so")
for wheel in sorted(wheels.iterdir()):
    archive = zipfile.ZipFile(wheel)
    for name in archive.namelist():
        path = pathlib.PurePosixPath(name)
        if name.startswith("torch/include/") and not name.endswith("/"):
            place = target / path.relative_to("torch")
        elif name.startswith("torch/lib/") and ".so" in name and not left_out.match(path.name):
            place = target / "lib" / path.name
        elif path.name in ("libcupti.so.13", "libcudart.so.13"):
            place = target / "lib" / path.name
        elif wheel.name.startswith("torch-") and path.name in ("LICENSE", "NOTICE") and len(path.parts) == 3:
            place = target / path.name
        else:
            continue
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(name) as source, open(place, "wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
PYTHON
  ln -s libtorch_cpu.so "$stage/libtorch/lib/libtorch.so"
  echo "$version" >"$stage/libtorch/build-version"
}

# Whether the library in folder $1 loads and starts.
loads() {
  LD_LIBRARY_PATH="$1" python3 -c 'import ctypes, sys; ctypes.CDLL(sys.argv[1])' \
    "$1/libtorch_cpu.so" >&2
}

# Reduces the library's size by a fifth, if it still loads afterwards.
slim() {
  local library="$stage/libtorch/lib/libtorch_cpu.so"
  command -v strip >/dev/null || return 0
  cp "$library" "$stage/whole.so"
  if ! strip --strip-unneeded "$library" || ! loads "$stage/libtorch/lib"; then
    say "The library does not load when stripped: it stays as it is."
    mv "$stage/whole.so" "$library"
  fi
}

if [ -n "${LIBTORCH_URL:-}" ]; then
  from_archive
else
  from_wheels
fi
loads "$stage/libtorch/lib" || die "the library does not load on this machine."
slim

chmod -R u=rwX,go=rX "$stage/libtorch"
# Another run may have been faster; both have the same content.
mv -T "$stage/libtorch" "$target" 2>/dev/null || [ -f "$target/build-version" ] ||
  die "$target is in the way."
say "libtorch $version is in $target."
printf '%s\n' "$target"
