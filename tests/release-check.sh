#!/usr/bin/env bash
# Checks what a release needs, and prints one line for each check: `ok`, `failed`, `open` or `skipped`. `open` is
# what the release itself will do; FINAL=1 counts it as failed. What a missing program would check is skipped.
# BASELINE is the commit or tag that the reporter's API is compared with.
set -euo pipefail
cd "$(dirname "$0")/.."
cargo=${CARGO:-cargo}
log=$(mktemp)
burn_lock=reporter/burn/Cargo.lock
cp "$burn_lock" "$log.lock"
# Cargo notes there what replaces a crate of the registry.
trap 'cp "$log.lock" "$burn_lock"; rm -f "$log" "$log.lock"' EXIT

# The selection of packages and features that all builds of the Makefile have.
read -ra all <<<"${ALL:---workspace --locked}"

failures=0
line() { printf '%-8s %s\n' "$1" "$2"; }
failed() { line failed "$1"; failures=$((failures + 1)); }
open() { if [ -n "${FINAL:-}" ]; then failed "$1"; else line open "$1"; fi; }
# check NAME COMMAND...: its output is shown if it fails.
check() {
  local name=$1
  shift
  if "$@" >"$log" 2>&1; then line ok "$name"; else failed "$name"; sed 's/^/         /' "$log" | tail -n 40; fi
}

version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
versions() {
  local status=0 file found
  agree() {
    found=$(sed -n "$2" "$1" | sort -u)
    [ "$found" = "$version" ] || { echo "$1: expected $version, found \"$found\""; status=1; }
  }
  agree Cargo.toml '/^paceline\(-[a-z]*\)\? = / s/.*version = "=\?\([^"]*\)".*/\1/p'
  agree reporter/burn/Cargo.toml '/paceline-\|^version/ s/.*version = "=\?\([^"]*\)".*/\1/p'
  agree Dockerfile 's/^ARG VERSION=//p'
  agree images/Cargo.toml 's/^version = "\(.*\)"/\1/p'
  agree CITATION.cff 's/^version: //p'
  agree sidecar/python/src/paceline/__init__.py 's/^__version__ = "\(.*\)"/\1/p'
  # These take the version of the crate that they contain.
  for file in sidecar/python/pyproject.toml allocator/python/pyproject.toml; do
    grep -q '^dynamic = \["version"\]' "$file" || { echo "$file: states a version of its own"; status=1; }
  done
  return "$status"
}
check "version $version everywhere" versions

# The top section, such as `## 0.1.0 (2026-11-27)`.
section=$(sed -n 's/^## //p' CHANGELOG.md | head -n 1)
case $section in
  "$version ("[0-9]*")") line ok "CHANGELOG.md: $section" ;;
  "$version"*) open "CHANGELOG.md: \"$section\" has no date" ;;
  *) failed "CHANGELOG.md: the top section is \"$section\"" ;;
esac

has_files() { compgen -G "$1" >/dev/null; }
only_this_version() {
  local file status=0
  for file in dist/*; do
    case $file in *-"$version"-* | *-"$version".* | *_"$version"-* | */SHA256SUMS) ;; *) echo "$file"; status=1 ;; esac
  done
  return "$status"
}
twine=target/dist-tools/bin/twine
[ -x "$twine" ] || twine=$(command -v twine || true)
if ! has_files 'dist/*'; then
  line skipped "dist: \`make dist deb\` has made nothing"
else
  check "dist: files of $version alone" only_this_version
  if ! has_files 'dist/*.whl'; then
    line skipped "twine check: no wheel in dist"
  elif [ -z "$twine" ]; then
    line skipped "twine check: twine is missing"
  else
    # The archives of the programs are not Python's.
    mapfile -t sources < <(compgen -G 'dist/*.tar.gz' | grep -v -e '-linux\.tar\.gz$' || true)
    check "twine check" "$twine" check --strict dist/*.whl "${sources[@]}"
  fi
fi

check "packages: metadata, licences, no strays" \
  "$cargo" test "${all[@]}" --test structure packages::

# What is not committed is not in a release; while one works on it, DIRTY=1 lets it be packaged.
dirty=(${DIRTY:+--allow-dirty})
check "cargo publish --workspace --dry-run" "$cargo" publish --workspace --dry-run --locked "${dirty[@]}"

# The adapter for Burn is a workspace of its own: it is packaged with what it needs from the packages above.
burn() {
  local name folder patches=()
  [ -n "${DIRTY:-}" ] || git diff --quiet HEAD -- reporter/burn ||
    { echo "reporter/burn has changes that are not committed"; return 1; }
  folder=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-target}")/package
  "$cargo" package --workspace --no-verify --locked "${dirty[@]}" \
    --exclude paceline-examples --exclude paceline-system-tests || return 1
  for name in local reporter tfevents wire; do
    rm -rf "$folder/paceline-$name-$version"
    tar -xzf "$folder/paceline-$name-$version.crate" -C "$folder" || return 1
    patches+=(--config "patch.crates-io.paceline-$name.path=\"$folder/paceline-$name-$version\"")
  done
  # Cargo notes the patches in the lock file, and would refuse it as not committed.
  "$cargo" package --manifest-path reporter/burn/Cargo.toml --allow-dirty "${patches[@]}"
}
check "cargo package of paceline-burn" burn

# The oldest compiler that the reporter and its parts promise.
oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' reporter/Cargo.toml)
toolchain=$(rustup toolchain list 2>/dev/null | sed -n "s/^\(${oldest/./\\.}\(\.[0-9]*\)\?-[^ ]*\).*/\1/p" | head -n 1 || true)
old_compiler() {
  local features
  for features in --no-default-features "" --features=metrics,sigterm,tensorboard; do
    RUSTUP_TOOLCHAIN=$toolchain cargo check --locked --package paceline-reporter ${features:+"$features"} \
      --target-dir target/oldest || return 1
  done
}
if [ -n "$toolchain" ]; then check "the reporter compiles with Rust $oldest" old_compiler
else line skipped "Rust $oldest: rustup has no such toolchain (rustup toolchain install $oldest.0 --profile minimal)"; fi

baseline=${BASELINE:-$(git describe --tags --abbrev=0 --match 'v*' 2>/dev/null || true)}
if ! "$cargo" semver-checks --version >/dev/null 2>&1; then
  line skipped "API of the reporter: cargo-semver-checks is missing"
elif [ -z "$baseline" ]; then
  line skipped "API of the reporter: no release yet, and no BASELINE"
else
  check "API of the reporter since $baseline" \
    "$cargo" semver-checks --package paceline-reporter --baseline-rev "$baseline" --default-features
fi

[ "$failures" = 0 ] || { echo "$failures of the checks failed." >&2; exit 1; }
