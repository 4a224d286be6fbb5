#!/usr/bin/env bash
# Builds the guide as a book of HTML pages in target/guide, with mdBook: from the path if it is there, else compiled
# once into the user's cache. Documents of the repository to which the guide links are its last chapters. So a
# link of one document to another also works in the book.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=0.4.52
cache="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/mdbook-$version"
if ! command -v mdbook >/dev/null; then
  [ -x "$cache/bin/mdbook" ] || cargo install --quiet --locked --no-default-features --version "$version" --root "$cache" mdbook
  PATH="$cache/bin:$PATH"
fi

stage=target/guide-source
rm -rf "$stage" target/guide
mkdir -p "$stage"
# What documents link to, at the same places.
git ls-files -z -- '*.md' '*.svg' examples 'LICENSE*' '*Dockerfile' sidecar/frameworks/fixtures.toml |
  xargs -0 cp --parents -t "$stage"
# Of the new and not yet committed as well.
git ls-files -z --others --exclude-standard -- examples/guide | xargs -0 -r cp --parents -t "$stage"
sed 's#^build-dir = .*#build-dir = "../guide"#' examples/guide/book.toml >"$stage/book.toml"
{
  sed -E 's#\]\(([a-z]+\.md)\)#](examples/guide/\1)#' examples/guide/SUMMARY.md
  printf '\n# The documents\n\n'
  git ls-files -- '*.md' | grep -v -e '^examples/guide/' -e '^\.github/' | while read -r file; do
    title=$(sed -n 's/^# //p' "$file" | head -n 1)
    printf -- '- [%s](%s)\n' "${title:-$file}" "$file"
  done
} >"$stage/SUMMARY.md"
mdbook build "$stage"
echo "target/guide/examples/guide/index.html"
