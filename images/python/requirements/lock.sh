#!/usr/bin/env bash
# Makes the lists with checksums anew, from the lists without: *.txt of *.in. It wants uv. What is
# pinned already stays as it is.
set -euo pipefail
cd "$(dirname "$0")"
for list in torch torch-cuda keras; do
  options=()
  [ "$list" = keras ] || options=(--no-deps)
  uv pip compile --quiet --universal --generate-hashes --only-binary :all: --python-version 3.11 \
    --no-annotate --custom-compile-command requirements/lock.sh "${options[@]}" \
    --output-file "$list.txt" "$list.in"
done
