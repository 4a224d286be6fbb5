#!/usr/bin/env bash
# Makes the wheels and the source archives of the packages `paceline` (sidecar and Python) and
# `paceline-allocator` (the command) in ../../dist.
#
#   dist.sh [sidecar] [allocator]
#
# The programs are static and need no C library, so that one wheel serves every Linux of its processor.
# Only the last step differs from `make build` and ../image.sh: what they have compiled is not compiled
# again. PROFILE=dev is quick, and makes large and slow programs; for tests of this script.
set -euo pipefail
cd "$(dirname "$0")"
root=$(realpath ../..)
dist=$root/dist

say() { printf '%s\n' "$*" >&2; }
die() { say "dist: $*"; exit 1; }

(($#)) || set -- sidecar allocator
for package; do
  [[ $package == sidecar || $package == allocator ]] ||
    die "invalid package \"$package\": expected sidecar or allocator."
done
command -v python3 >/dev/null || die "python3 is missing: install it."

# The tools, in an environment that is made again when their versions change.
tools=$root/target/dist-tools
if ! cmp -s dist-tools.txt "$tools/made-of"; then
  say "Installing maturin, twine and wheel."
  python3 -m venv --clear "$tools" || die "cannot make an environment: on Debian, apt-get install python3-venv."
  "$tools/bin/pip" install --quiet --disable-pip-version-check --requirement dist-tools.txt ||
    die "cannot install them: pip has no access to a package index."
  cp dist-tools.txt "$tools/made-of"
fi
# The first part of the names of a package's files.
wheel_name() { [ "$1" = sidecar ] && echo paceline || echo paceline_allocator; }
maturin() { "$tools/bin/maturin" "$@" >&2; }
# Cargo has many words about an archive; they matter only if it fails.
archive() {
  maturin sdist --out "$stage" 2>"$stage.log" || { cat "$stage.log" >&2; return 1; }
}

host=$(rustc -vV | sed -n 's/^host: //p')
targets=("$host")
# Another processor needs its standard library and its linker.
for other in x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu; do
  [ "$other" != "$host" ] || continue
  linker=${other%%-*}-linux-gnu-gcc
  if ! [ -d "$(rustc --print sysroot)/lib/rustlib/$other/lib" ]; then
    say "wheels for ${other%%-*}: skipped, Rust's standard library for $other is missing (rustup target add $other)."
  elif ! command -v "$linker" >/dev/null; then
    say "wheels for ${other%%-*}: skipped, the linker $linker is missing."
  else
    targets+=("$other")
  fi
done

profile=${PROFILE:-release}
compile() {
  local target=$1 folder cc=${CC:-cc} options=()
  folder=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-$root/target}/static-$target")
  mkdir -p "$folder"
  # Without the option, build scripts and macros are those of other builds.
  if [ "$target" != "$host" ]; then
    options=(--target "$target")
    cc=${target%%-*}-linux-gnu-gcc
    export "CC_${target//-/_}=$cc" "CARGO_TARGET_$(tr a-z- A-Z_ <<<"$target")_LINKER=$cc"
  fi
  "$cc" -O2 -Wall -c ../lookup.c -o "$folder/lookup.o"
  say "Building the wheel for ${target%%-*} (minutes, the first time)."
  # A static program asks nothing of the machine's C library and little of its kernel (3.2), so it keeps
  # the promise of the oldest tag that Rust itself keeps, and that of musl (Alpine), too. maturin checks
  # that the program needs no library, but it does not give both tags: `wheel` adds the second.
  # The flags of rustc are those of ../image.sh.
  # Optimized across crates, for small wheels.
  export CARGO_PROFILE_RELEASE_LTO=fat
  (cd "$root/$package/python" && maturin build --profile "$profile" --locked "${options[@]}" \
    --compatibility manylinux_2_17 --auditwheel check --out "$stage" -- \
    -C target-feature=+crt-static -C strip=symbols -C link-arg="$folder/lookup.o")
  "$tools/bin/wheel" tags --remove --platform-tag "+musllinux_1_1_${target%%-*}" \
    "$stage/$(wheel_name "$package")"-*manylinux*_"${target%%-*}".whl >&2
}

mkdir -p "$dist"
stage=$(mktemp -d)
trap 'rm -rf "$stage" "$stage.log"' EXIT
trap 'exit 130' INT TERM
for package; do
  say "Package $package: source archive."
  (cd "$root/$package/python" && archive)
  for target in "${targets[@]}"; do compile "$target"; done
done
"$tools/bin/twine" check --strict "$stage"/* >&2
# Only whole sets appear in dist, and none of an earlier version stays beside them.
for package; do
  name=$(wheel_name "$package")
  rm -f "$dist/$name"-[0-9]*.whl "$dist/$name"-[0-9]*.tar.gz
done
mv "$stage"/* "$dist"
(cd "$dist" && ls -l -- *.whl *.tar.gz | awk '{ printf "%7.1f MB  dist/%s\n", $5 / 1e6, $9 }')
