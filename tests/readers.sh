#!/usr/bin/env bash
# Prints the path of a Python with the readers that the tests use: TensorBoard's own, and the messages of
# OpenTelemetry. They are fetched once, from PyPI.
set -euo pipefail

packages=(tensorboard==2.21.0 opentelemetry-proto==1.45.2)
venv="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/readers"
stamp="$venv/packages"
if [ "$(cat "$stamp" 2>/dev/null)" != "${packages[*]}" ]; then
  command -v python3 >/dev/null || { echo "python3 is missing" >&2; exit 1; }
  python3 -m venv --clear "$venv" >&2 || { echo "python3 cannot create a virtual environment" >&2; exit 1; }
  "$venv/bin/pip" install --quiet "${packages[@]}" >&2 || { echo "cannot fetch ${packages[*]}" >&2; exit 1; }
  echo "${packages[*]}" >"$stamp"
fi
echo "$venv/bin/python"
