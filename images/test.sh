#!/usr/bin/env bash
# Lints and tests the workloads, then trains each for a moment in a container of its own.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '%s\n' "$*" >&2; }
die() { say "images: $*"; exit 1; }
cargo="${CARGO:-cargo}"

LIBTORCH="$(./libtorch.sh | tail -n 1)"
export LIBTORCH LD_LIBRARY_PATH="$LIBTORCH/lib" OMP_WAIT_POLICY=PASSIVE
# All in release mode: libtorch's binding takes minutes to compile, once.
"$cargo" clippy --workspace --all-targets --release --locked -- -D warnings
RUSTDOCFLAGS="-D warnings" "$cargo" doc --workspace --no-deps --release --locked
"$cargo" test --workspace --release --locked

data="$(./data.sh | tail -n 1)"
name="paceline-images-test-$$"
trap 'docker rm --force "$name" >/dev/null 2>&1 || true' EXIT
trap 'exit 130' INT TERM
train() { docker run --volume "$data:/data:ro" --env PACELINE_DATA=/data "$@"; }

for workload in vae mnist; do
  log="$(train --rm --name "$name" paceline/workloads "$workload" --steps 20)"
  grep -q '^finished: steps=20 mean_loss=' <<<"$log" || die "$workload did not finish: $log"
  say "$(grep '^finished' <<<"$log") ($workload)"
done

train --detach --name "$name" paceline/workloads vae --log-interval 1 >/dev/null
for _ in $(seq 1 300); do
  docker logs "$name" 2>/dev/null | grep -q '^Train Epoch' && break
  sleep 0.1
done
docker stop --time 10 "$name" >/dev/null
code="$(docker inspect --format '{{.State.ExitCode}}' "$name")"
[ "$code" = 0 ] || die "SIGTERM ended the training with exit code $code: $(docker logs "$name" 2>&1 | tail -n 5)"
docker logs "$name" | tail -n 1 | grep -q '^finished' || die "SIGTERM cut the training off"
say "SIGTERM ends the training after its batch."
