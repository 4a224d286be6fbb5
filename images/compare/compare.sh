#!/usr/bin/env bash
# Compares the models of the workloads with PyTorch's: same weights and inputs, then outputs, losses
# and gradients. PYTHON names a Python with torch, safetensors and the twins' imports; without it,
# that of sidecar/frameworks is used, or python3.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '%s\n' "$*" >&2; }

python="${PYTHON:-$(../../sidecar/frameworks/run.sh --environments)/torch/bin/python}"
[ -n "${PYTHON:-}" ] || [ -x "$python" ] || python=python3
for module in torch safetensors numpy tqdm; do
  "$python" -c "import $module" 2>/dev/null || {
    say "The comparison with PyTorch is skipped: $python has no module $module."
    exit 0
  }
done

LIBTORCH="$(../libtorch.sh | tail -n 1)"
export LIBTORCH OMP_WAIT_POLICY=PASSIVE
(cd .. && "${CARGO:-cargo}" build --release --locked --target-dir target --package paceline-compare)
"$python" compare.py "$LIBTORCH/lib" ../target/release/compare-models ../python
