#!/usr/bin/env bash
# Makes archives of both programs for every Linux, their bills of materials, and the checksums of everything in dist/.
#
# The programs are the static ones of the wheels, so nothing is compiled again: run `make dist` before.
set -euo pipefail
cd "$(dirname "$0")/../.."

say() { printf '%s\n' "$*" >&2; }
die() { say "tarballs: $*"; exit 1; }

command -v python3 >/dev/null || die "python3 is missing: install it."
here=$(uname -m)
epoch=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM

# Unpacks the program of a wheel: $1 the package, $2 the processor, $3 the program, $4 where.
program() {
  local wheels
  mapfile -t wheels < <(compgen -G "dist/$1-[0-9]*_$2.whl")
  python3 - "${wheels[0]}" "$3" "$4" <<'PYTHON'
import os, sys, zipfile

wheel, name, path = sys.argv[1:]
with zipfile.ZipFile(wheel) as archive:
    entry = next(it for it in archive.namelist() if it.endswith(f".data/scripts/{name}"))
    with open(path, "wb") as file:
        file.write(archive.read(entry))
os.chmod(path, 0o755)
PYTHON
}

# Whether dist has one wheel of each package for a processor.
has_wheels() {
  local package wheels
  for package in paceline_allocator paceline; do
    mapfile -t wheels < <(compgen -G "dist/$package-[0-9]*_$1.whl")
    [ "${#wheels[@]}" = 1 ] || return 1
  done
}

# The archive for one processor.
archive() {
  local processor=$1 folder top version
  folder=$stage/$processor
  mkdir -p "$folder/bin"
  program paceline_allocator "$processor" paceline "$folder/bin/paceline"
  program paceline "$processor" paceline-sidecar "$folder/bin/paceline-sidecar"
  version=$("$stage/$here/bin/paceline" --version | awk '{print $2}')
  top=paceline-$version-$processor-linux
  # Pages and completions are the same on every processor.
  for name in paceline paceline-sidecar; do
    local run=$stage/$here/bin/$name
    "$run" man --into "$folder/share/man/man1"
    install -d "$folder"/share/{bash-completion/completions,zsh/site-functions,fish/vendor_completions.d}
    "$run" completions bash >"$folder/share/bash-completion/completions/$name"
    "$run" completions zsh >"$folder/share/zsh/site-functions/_$name"
    "$run" completions fish >"$folder/share/fish/vendor_completions.d/$name.fish"
  done
  install -D -m 644 -t "$folder/share/doc/paceline" README.md CHANGELOG.md LICENSE-* \
    examples/deploy/paceline.service examples/deploy/paceline-sidecar@.service examples/deploy/paceline.toml
  # The first line names a schema by a path in this repository.
  sed -i '1{/^#:schema /d}' "$folder/share/doc/paceline/paceline.toml"
  for package in paceline paceline-sidecar; do
    python3 allocator/tarballs/sbom.py "$package" "$processor-unknown-linux-gnu" --epoch "$epoch" --static \
      >"$stage/$package-$version-$processor-linux.cdx.json"
  done
  install -m 644 -t "$folder/share/doc/paceline" "$stage"/*-"$processor-linux.cdx.json"
  mv "$folder" "$stage/$top"
  # The same programs give the same bytes on every machine.
  tar --create --directory "$stage" --sort name --owner 0 --group 0 --numeric-owner --mode 'u+rw,go=u,go-w' \
    --mtime "@$epoch" "$top" | gzip -9n >"$stage/$top.tar.gz"
  mv "$stage/$top" "$folder"
}

has_wheels "$here" || die "no wheels for $here in dist: run \`make dist\` first."
archive "$here"
for other in x86_64 aarch64; do
  if [ "$other" = "$here" ]; then continue; fi
  if has_wheels "$other"; then archive "$other"
  else say "archive for $other: skipped, dist has no wheels for it."; fi
done
rm -f dist/paceline-[0-9]*-linux.tar.gz dist/*.cdx.json dist/SHA256SUMS
mv "$stage"/*.tar.gz "$stage"/*.cdx.json dist/
(
  cd dist
  sums=$(find . -maxdepth 1 -type f -printf '%f\n' | sort | xargs -d '\n' sha256sum --)
  printf '%s\n' "$sums" >SHA256SUMS
  ls -l -- *-linux.tar.gz *.cdx.json SHA256SUMS | awk '{ printf "%7.1f MB  dist/%s\n", $5 / 1e6, $9 }'
)
