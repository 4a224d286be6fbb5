#!/usr/bin/env bash
# Trains each script briefly in its container, which has no network. Checks the sidecar's reports, the
# end by `docker stop`, and the errors for wrong arguments. Needs the images of build.sh.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '%s\n' "$*" >&2; }
die() { say "Python images: $*"; exit 1; }

data="$(../data.sh | tail -n 1)"
name="paceline-python-test-$$"
scratch="$(mktemp -d)"
# The user of the images must be able to write there.
install -d -m 777 "$scratch/status"
trap 'docker rm --force "$name" >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

container() {
  docker run --network none --name "$name" --volume "$data:/data:ro" --env PACELINE_DATA=/data \
    --volume "$scratch/status:/status" --env PACELINE_STATUS_FILE=/status/progress.json "$@"
}
# A field of the status file, such as .eval.count, as Python prints it.
field() {
  python3 - "$scratch/status/progress.json" "$1" <<'PYTHON'
import functools, json, sys
progress = json.load(open(sys.argv[1]))
print(functools.reduce(dict.__getitem__, sys.argv[2].strip(".").split("."), progress))
PYTHON
}
log() { docker logs "$name" 2>&1 | tr '\r' '\n' | tail -n 5; }

# It trains this many steps, and the sidecar has seen numeric losses.
trains() {
  local image=$1 script=$2 losses
  rm -f "$scratch/status/progress.json"
  container --rm "$image" python "$script" --steps 12 >"$scratch/log" 2>&1 ||
    die "$script failed: $(tail -n 5 "$scratch/log")"
  grep -q 'Ended after step 12\.' "$scratch/log" || die "$script did not take 12 steps."
  losses=$(field .eval.count)
  [ "$losses" -ge 1 ] || die "the sidecar saw no loss of $script."
  [ "$(field .state)" = finished ] || die "the sidecar's state of $script is $(field .state), not finished."
  say "$script trains: $losses losses reported, the last $(field .eval.value)."
}

# `docker stop` ends it after its batch: with exit code 0, and not by SIGKILL after 10 s.
stops() {
  local image=$1 script=$2 code began
  container --detach "$image" python "$script" >/dev/null
  for _ in $(seq 1 600); do
    docker exec "$name" paceline-sidecar healthcheck --ready >/dev/null 2>&1 && break
    [ "$(docker inspect --format '{{.State.Running}}' "$name")" = true ] ||
      die "$script ended: $(log)"
    sleep 0.2
  done
  docker exec "$name" paceline-sidecar healthcheck --ready || die "$script reports nothing: $(log)"
  began=$SECONDS
  docker stop --time 10 "$name" >/dev/null
  code="$(docker inspect --format '{{.State.ExitCode}}' "$name")"
  [ "$code" = 0 ] || die "SIGTERM ended $script with exit code $code: $(log)"
  log | grep -q 'Ended after step' || die "SIGTERM cut $script off: $(log)"
  say "$script stops within $((SECONDS - began + 1)) s of docker stop."
  docker rm "$name" >/dev/null
}

# One line that has the words, and exit code 2.
refuses() {
  local image=$1 words=$2 code=0 said
  shift 2
  said="$(container --rm "$image" python "$@" 2>&1)" || code=$?
  [ "$code" = 2 ] || die "$* ended with exit code $code: $said"
  [[ $(wc -l <<<"$said") = 1 && $said == *"$words"* ]] || die "$* says: $said"
}

# The allocator and the probes find these.
described() {
  local user
  user=$(docker inspect --format '{{.Config.User}}' "$1")
  [ "$user" = trainer ] || die "$1 runs as ${user:-root}."
  [ "$(docker inspect --format '{{index .Config.Labels "paceline.endpoint"}}' "$1")" = 7223 ] ||
    die "$1 names no endpoint."
  docker inspect --format '{{.Config.Healthcheck}}' "$1" | grep -q 'paceline-sidecar healthcheck' ||
    die "$1 has no health check."
}

torch=paceline/python-torch keras=paceline/python-keras
docker run --rm --network none --volume "$PWD:/scripts:ro" --env PYTHONPATH=/scripts \
  --env PYTHONDONTWRITEBYTECODE=1 "$torch" python -m unittest discover --start-directory /scripts/tests
threads=$(docker run --rm --network none --cpus 1 "$torch" \
  python -c 'import cli; print(cli.threads("auto"))')
[ "$threads" = 1 ] || die "--threads auto gives $threads under a quota of 1 CPU."

for workload in torch:vae torch:mnist torch:resnet50 keras:keras_mnist keras:keras_gru; do
  image=paceline/python-${workload%:*} script=${workload#*:}.py
  trains "$image" "$script"
  stops "$image" "$script"
  refuses "$image" "--what" "$script" --what
  refuses "$image" "above 0" "$script" --steps 0
  [ "$script" = keras_gru.py ] || refuses "$image" "/nowhere" "$script" --data /nowhere
done
for image in "$torch" "$keras"; do
  described "$image"
done
say "The Python workloads train, report, stop and refuse as they should."
