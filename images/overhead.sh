#!/usr/bin/env bash
# Measures the cost of the reporter in a real training: MNIST with it and without it, in turns.
set -euo pipefail
cd "$(dirname "$0")"

LIBTORCH="$(./libtorch.sh | tail -n 1)"
PACELINE_DATA="$(./data.sh | tail -n 1)"
export LIBTORCH PACELINE_DATA LD_LIBRARY_PATH="$LIBTORCH/lib" OMP_WAIT_POLICY=PASSIVE
"${CARGO:-cargo}" bench --locked --package paceline-mnist --bench overhead
