#!/usr/bin/env bash
# Regenerates the lists with checksums, *.txt, from the lists without, *.in. It needs uv. Packages that
# are pinned already keep their versions.
set -euo pipefail
cd "$(dirname "$0")"
for list in torch torch-cuda keras; do
  options=()
  [ "$list" = keras ] || options=(--no-deps)
  uv pip compile --quiet --universal --generate-hashes --only-binary :all: --python-version 3.11 \
    --no-annotate --custom-compile-command requirements/lock.sh "${options[@]}" \
    --output-file "$list.txt" "$list.in"
done
