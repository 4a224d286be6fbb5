#!/usr/bin/env bash
# Builds the Debian packages of both programs into dist/, with cargo-deb: from the path if it is there, else compiled once
# into the user's cache. The programs are those of `make build`.
set -euo pipefail
cd "$(dirname "$0")/../.."

tool=3.8.0
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/cargo-deb-$tool"
if ! command -v cargo-deb >/dev/null; then
  [ -x "$cache/bin/cargo-deb" ] ||
    cargo install --quiet --locked --version "$tool" --root "$cache" cargo-deb
  PATH="$cache/bin:$PATH"
fi

stage=target/deb
rm -rf "$stage"
mkdir -p "$stage/units" dist
for program in paceline paceline-sidecar; do
  target/release/$program man --into "$stage/man/$program"
  target/release/$program completions bash >"$stage/$program.bash"
  target/release/$program completions zsh >"$stage/_$program"
  target/release/$program completions fish >"$stage/$program.fish"
done
version=$(target/release/paceline --version | awk '{print $2}')
maintainer=$(sed -n 's/^maintainer = "\(.*\)"/\1/p' allocator/Cargo.toml)
date=$(git log -1 --format=%cD)
for package in paceline paceline-sidecar; do
  printf '%s (%s-1) unstable; urgency=medium\n\n  * See CHANGELOG.md of the sources.\n\n -- %s  %s\n' \
    "$package" "$version" "$maintainer" "$date" | gzip -9n >"$stage/$package.changelog.gz"
done
# A package's programs are in /usr/bin.
for unit in paceline.service paceline-sidecar@.service; do
  sed 's#/usr/local/bin/#/usr/bin/#' "examples/deploy/$unit" >"$stage/units/$unit"
done
# The first line names a schema by a path in this repository.
sed '1{/^#:schema /d}' examples/deploy/paceline.toml >"$stage/paceline.toml"
for package in paceline paceline-sidecar; do
  cargo deb --quiet --no-build --package "$package" --output dist/
done
ls -l dist/*.deb
