#!/usr/bin/env bash
# Lints and tests the workloads, then trains each briefly in its own container.
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

# Each by its own image; small batches where a batch takes long.
workloads=(vae mnist gru 'resnet50 --batch-size 8')
for workload in "${workloads[@]}"; do
  read -ra line <<<"$workload"
  log="$(train --rm --name "$name" "paceline/${line[0]}" "${line[@]:1}" --steps 20)"
  grep -q '^finished: steps=20 mean_loss=' <<<"$log" || die "$workload did not finish: $log"
  say "$(grep '^finished' <<<"$log") ($workload)"
done
log="$(train --rm --name "$name" paceline/workloads resnet50 --inference --steps 3 --arrivals 5)"
grep -q '^finished: batches=3 mean_latency=' <<<"$log" || die "inference did not finish: $log"
say "$(grep '^finished' <<<"$log") (inference)"

# Checks that a command is refused with exit code 2 and one line that contains $1; the rest is the command.
refused() {
  local words="$1" log code=0
  shift
  log="$(docker run --rm --name "$name" "$@" 2>&1)" || code=$?
  [ "$code" = 2 ] || die "exit code $code, not 2, for: $*: $log"
  [ "$(wc -l <<<"$log")" = 1 ] || die "more than one line: $log"
  grep -qF -- "$words" <<<"$log" || die "the line does not contain '$words': $log"
}

for workload in vae mnist resnet50; do
  refused 'is not a folder of images' paceline/workloads "$workload" --data /missing
done
refused 'cannot train on /missing' paceline/workloads gru text --text /missing
for workload in vae mnist gru resnet50; do
  refused 'cannot write a checkpoint to /usr' \
    --env PACELINE_CHECKPOINTS=/usr paceline/workloads "$workload"
  refused "unexpected argument '--no-such-option'" paceline/workloads "$workload" --no-such-option
done
say "A missing folder, an unwritable one and a bad option are refused with one line."

one_cpu="$(train --rm --name "$name" --cpus 1 paceline/workloads vae --steps 1)"
grep -q ', 1 threads$' <<<"$one_cpu" || die "a quota of one CPU is not followed: $one_cpu"
say "A quota of one CPU means one thread."

# The folder belongs to the user of this script, who is not the container's user.
checkpoints="$(mktemp -d)"
chmod 777 "$checkpoints"
trap 'docker rm --force "$name" >/dev/null 2>&1 || true; rm -rf "$checkpoints"' EXIT
for workload in "${workloads[@]}"; do
  read -ra line <<<"$workload"
  workload="${line[0]}"
  train --detach --name "$name" --volume "$checkpoints:/checkpoints" \
    --env PACELINE_CHECKPOINTS=/checkpoints "paceline/$workload" "${line[@]:1}" --log-interval 1 >/dev/null
  for _ in $(seq 1 300); do
    docker logs "$name" 2>/dev/null | grep -q '^Train Epoch' && break
    sleep 0.1
  done
  docker exec "$name" healthcheck || die "the endpoint of $workload does not answer."
  began=$SECONDS
  docker stop --time 10 "$name" >/dev/null
  took=$((SECONDS - began))
  code="$(docker inspect --format '{{.State.ExitCode}}' "$name")"
  log="$(docker logs "$name" 2>&1)"
  docker rm "$name" >/dev/null
  [ "$code" = 0 ] || die "SIGTERM ended $workload with exit code $code: $log"
  last="$(tail -n 1 <<<"$log")"
  step="$(sed -n 's/^finished: steps=\([0-9]*\) .*/\1/p' <<<"$last")"
  [ -n "$step" ] || die "SIGTERM cut $workload off: $last"
  [ "$(ls -A "$checkpoints")" = "$workload.safetensors" ] || die "left: $(ls -A "$checkpoints")"

  log="$(train --rm --name "$name" --volume "$checkpoints:/checkpoints" "paceline/$workload" \
    "${line[@]:1}" --checkpoints /checkpoints --resume --steps "$((step + 3))" --log-interval 1)"
  grep -q "^resumed at step $step from /checkpoints/$workload.safetensors" <<<"$log" ||
    die "$workload did not resume at step $step: $log"
  grep -q "^finished: steps=$((step + 3)) " <<<"$log" || die "$workload did not continue: $log"
  rm -f "$checkpoints/$workload.safetensors"
  say "$workload stopped within $((took + 1)) s, left a checkpoint of step $step, and resumed from there."
done

# The metadata that the engine and the allocator read.
for workload in workloads vae mnist gru resnet50; do
  described="$(docker inspect --format '{{.Config.User}} {{.Config.Healthcheck.Test}}
{{- range $label, $value := .Config.Labels}} {{$label}}={{$value}}{{end}}' "paceline/$workload")"
  for words in '^trainer ' healthcheck org.opencontainers.image.{title,version,licenses}= \
    paceline.endpoint=7223; do
    grep -q -- "$words" <<<"$described" || die "paceline/$workload lacks $words: $described"
  done
done
train --detach --name "$name" --health-interval 1s paceline/gru >/dev/null
for _ in $(seq 1 300); do
  health="$(docker inspect --format '{{.State.Health.Status}}' "$name")"
  [ "$health" = starting ] || break
  sleep 0.1
done
[ "$health" = healthy ] || die "a container that trains is $health."
docker rm --force "$name" >/dev/null
say "The images have a user, labels, and a health check that succeeds."

ps/test.sh
