#!/usr/bin/env bash
# Tries the images of the sidecar and the allocator and every deployment of examples/deploy for real,
# as far as this machine allows. Ends with a table of passed, failed and skipped checks, and with exit
# code 1 if one failed. Checks for which the machine lacks something are skipped, never passed. It
# leaves the images paceline/sidecar, paceline/allocator and paceline/python.
#
# shellcheck disable=SC2317 # the checks are called by their names
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=../images/docker-build.sh
. images/docker-build.sh

deploy=examples/deploy
kubernetes=$deploy/kubernetes
venv=${XDG_CACHE_HOME:-$HOME/.cache}/paceline/kubernetes-validate
validator=1.37.0
job_image=paceline/python
name=paceline-deploy-$$
scratch=$(mktemp -d)
table=() failed=0

say() { printf '%s\n' "$*" >&2; }
die() { say "$*"; exit 1; }
skip() { say "$*"; exit 77; }

# Waits for a command to succeed, for at most $1 seconds.
within() {
  local end=$((SECONDS + $1))
  shift
  until "$@" >/dev/null 2>&1; do
    ((SECONDS < end)) || die "still fails: $* ($("$@" 2>&1 | tail -n 1))"
    sleep 0.2
  done
}

# Runs a function and keeps its result: exit code 77 means skipped, and its last line gives the reason.
check() {
  local what=$1 code=0
  shift
  say "== $what"
  set +e
  (
    set -e
    "$@"
  ) 2>&1 | tee "$scratch/output" >&2
  code=${PIPESTATUS[0]}
  set -e
  local last
  last=$(tail -n 1 "$scratch/output")
  case $code in
    0) table+=("passed   $what: $last") ;;
    77) table+=("skipped  $what: $last") ;;
    *) table+=("FAILED   $what: $last") failed=1 ;;
  esac
}

compose=(docker compose)
"${compose[@]}" version >/dev/null 2>&1 || compose=(docker-compose)
compose() { "${compose[@]}" --project-name "$name" --file "$deploy/compose.yaml" "$@"; }
# The allocator's arguments, which confine it to the jobs of this test.
allocator_compose() {
  PACELINE_STATE_DIR="$scratch/state" PACELINE_RUN_DIR="$scratch/run" "${compose[@]}" \
    --project-name "$name-allocator" --file "$scratch/compose/allocator-compose.yaml" \
    --file "$scratch/compose/test.yaml" "$@"
}

# podman keeps everything below the scratch folder, and pods have only their loopback as network.
podman() {
  CONTAINERS_CONF="$scratch/containers.conf" DISABLE_HC_SYSTEMD=true command podman \
    --root "$scratch/podman" --runroot "$scratch/podman-run" --cgroup-manager cgroupfs "$@"
}

clean() {
  {
    compose down --volumes --timeout 1
    [ ! -d "$scratch/compose" ] || allocator_compose down --timeout 10
    docker rm --force --volumes "$name-sidecar" "$name-allocator" "$name-loopback" "$name-socket"
    docker volume rm "$name-logs" "$name-state"
    if [ -d "$scratch/podman" ]; then
      podman pod rm --all --force --time 1
      podman unmount --all
    fi
  } >/dev/null 2>&1 || true
  rm -rf "$scratch"
}
trap clean EXIT
trap 'exit 130' INT TERM

need_engine() { docker version >/dev/null 2>&1 || skip "no Docker engine is reachable"; }
need_images() {
  need_engine
  docker image inspect paceline/sidecar "$job_image" >/dev/null 2>&1 || skip "the images are missing"
}
# Runs a command in the job's image, with the volumes of the test.
with_volumes() {
  docker run --rm --network none --volume "$name-logs:/logs" --volume "$name-state:/state" \
    "$job_image" "$@"
}
say_step() { with_volumes sh -c "echo step $1 loss 0.5 >>/logs/train.log"; }
# A number of the status file that the sidecar of `restricted` has left.
count() { with_volumes sed -E 's/.*"eval":\{[^}]*"count":([0-9]+).*/\1/' /state/status.json; }

image() {
  need_engine
  sidecar/image.sh
  docker run --rm --network none paceline/sidecar --version >/dev/null
  # Modules named by nsswitch.conf may belong to another C library, and crash the program: it must not
  # use them.
  local said size
  echo "hosts: elsewhere" >"$scratch/nsswitch.conf"
  said=$(docker run --rm --network none --volume "$scratch/nsswitch.conf:/etc/nsswitch.conf:ro" \
    paceline/sidecar healthcheck --listen localhost:1 2>&1 || true)
  [[ $said == *refused* ]] || die "it looks names up by modules: $said"
  size=$(docker image inspect --format '{{.Size}}' paceline/sidecar)
  ((size <= 10 << 20)) || die "it has $size bytes, more than 10 MiB"
  say "$((size / 1024)) KiB, runs without a C library"
}

python_image() {
  need_engine
  local base
  base=$(images/base-image.sh | tail -n 1)
  docker_build --quiet --tag "$job_image" - <<DOCKERFILE
FROM $base
RUN apt-get update -q \
  && apt-get install -y -q --no-install-recommends python3 \
  && rm -rf /var/lib/apt/lists/* /var/cache/apt/*.bin
DOCKERFILE
  docker run --rm --network none "$job_image" python3 --version
}

restricted() {
  need_images
  say_step 1
  docker run --detach --name "$name-sidecar" --read-only --cap-drop ALL \
    --security-opt no-new-privileges --user 65532:65532 --network none --health-interval 1s \
    --volume "$name-logs:/logs:ro" --volume "$name-state:/state" paceline/sidecar \
    --log /logs/train.log --state /state/state.json --status-file /state/status.json >/dev/null
  within 10 docker exec "$name-sidecar" /paceline-sidecar healthcheck --ready
  within 10 sh -c "docker inspect --format '{{.State.Health.Status}}' $name-sidecar | grep -x healthy"
  say_step 2
  local began=$SECONDS code
  docker stop --time 20 "$name-sidecar" >/dev/null
  ((SECONDS - began < 5)) || die "SIGTERM ended it after $((SECONDS - began)) s"
  code=$(docker inspect --format '{{.State.ExitCode}}' "$name-sidecar")
  [ "$code" = 0 ] || die "SIGTERM ended it with exit code $code: $(docker logs "$name-sidecar" 2>&1)"
  [ "$(count)" = 2 ] || die "its status file counts $(count) losses of 2"
  docker start "$name-sidecar" >/dev/null
  say_step 3
  within 10 docker exec "$name-sidecar" /paceline-sidecar healthcheck
  docker stop "$name-sidecar" >/dev/null
  [ "$(count)" = 3 ] || die "a successor counts $(count) losses of 3"
  say "read-only, without capabilities, as 65532; ends at SIGTERM, and its successor continues"
}

installed() {
  need_images
  mkdir "$scratch/shared"
  chmod 777 "$scratch/shared"
  docker run --rm --read-only --cap-drop ALL --network none --volume "$scratch/shared:/paceline" \
    paceline/sidecar install /paceline
  local code=0
  docker run --rm --volume "$scratch/shared:/paceline:ro" --network none "$job_image" \
    /paceline/paceline-sidecar exec -- python3 -c 'print("step 1 loss 0.5"); exit(7)' || code=$?
  [ "$code" = 7 ] || die "the job's exit code is $code, not 7"
  say "the installed program runs a job in its own image"
}

by_compose() {
  need_images
  command -v "${compose[0]}" >/dev/null || skip "neither 'docker compose' nor docker-compose is installed"
  export JOB_IMAGE=$job_image
  compose up --detach
  local job sidecar
  job=$(compose ps --quiet job) sidecar=$(compose ps --quiet sidecar)
  within 30 docker exec "$sidecar" /paceline-sidecar healthcheck --ready
  docker exec "$job" python3 -c '
import json, urllib.request
progress = json.load(urllib.request.urlopen("http://127.0.0.1:7223/v1/progress"))
assert progress["job"] == "train" and progress["total_steps"] == 5000, progress
assert 0 < progress["eval"]["value"] < 0.7, progress
assert progress["batch_latency"]["count"] > 0, progress'
  compose stop --timeout 10
  local codes
  codes=$(docker inspect --format '{{.State.ExitCode}}' "$job" "$sidecar" | xargs)
  [ "$codes" = "143 0" ] || die "the job and the sidecar ended with $codes, not with 143 and 0"
  compose down --volumes
  say "compose $("${compose[@]}" version --short): the endpoint is on the job's loopback"
}

validator() {
  command -v python3 >/dev/null || skip "python3 is missing"
  local installed='import importlib.metadata as packages; print(packages.version("kubernetes-validate"))'
  if [ "$("$venv/bin/python" -c "$installed" 2>/dev/null)" != "$validator" ]; then
    python3 -m venv --clear "$venv" || skip "python3 cannot create a virtual environment"
    "$venv/bin/pip" install --quiet "kubernetes-validate==$validator" ||
      skip "cannot fetch kubernetes-validate $validator"
  fi
}

# Checks manifests against the schemas of a version of Kubernetes, strictly.
valid_for() { "$venv/bin/kubernetes-validate" --strict --kubernetes-version "$@"; }

manifests() {
  validator
  local version
  for version in 1.29 "${validator%.*}"; do
    valid_for "$version" "$kubernetes"/sidecar/*.yaml "$kubernetes/function/train.yaml"
  done
  for version in 1.36 "${validator%.*}"; do
    valid_for "$version" "$kubernetes"/admission/*.yaml
  done
  say "valid for 1.29 and ${validator%.*}, the admission policies for 1.36 and ${validator%.*}"
}

need_kustomize() {
  command -v kubectl >/dev/null || skip "kubectl is missing"
  kubectl kustomize --help >/dev/null 2>&1 || skip "kubectl is too old for kustomize"
}

# The DaemonSet has the rights of paceline.service, and none at the API server.
overlays() {
  need_kustomize
  validator
  local overlay version built unit
  unit=$(sed -n 's/^CapabilityBoundingSet=//p' "$deploy/paceline.service" | sed 's/CAP_//g' | tr ' ' '\n' | sort | xargs)
  for overlay in base read-only pod-monitor otlp; do
    built=$scratch/$overlay.yaml
    kubectl kustomize "$kubernetes/$overlay" >"$built"
    for version in 1.30 "${validator%.*}"; do valid_for "$version" "$built"; done
    "$venv/bin/python" tests/deploy/rights.py "$unit" <"$built"
  done
  grep -q -- --dry-run "$scratch/read-only.yaml" || die "the read-only overlay writes limits"
  say "valid for 1.30 and ${validator%.*}; $unit and no other capability, no role, no token"
}

# `paceline inject` of the allocator's image.
inject() { docker run --rm --interactive --network none --read-only --cap-drop ALL --user 65534 paceline/allocator inject --quiet "$@"; }

injected() {
  need_engine
  docker image inspect paceline/allocator >/dev/null 2>&1 || skip "the image of the allocator is missing"
  validator
  local input pods=0
  for input in allocator/inject/tests/golden/*; do
    [[ $input != *.injected.* ]] || continue
    inject <"$input" >"$scratch/once"
    cmp "$scratch/once" "${input%.*}.injected.${input##*.}"
    "$venv/bin/python" tests/deploy/templates.py --old <"$scratch/once" >"$scratch/pods.yaml"
    valid_for 1.29 --quiet "$scratch/pods.yaml"
    "$venv/bin/python" tests/deploy/templates.py <"$scratch/once" >"$scratch/pods.yaml"
    valid_for "${validator%.*}" --quiet "$scratch/pods.yaml"
    pods=$((pods + $(grep -c '"kind": "Pod"' "$scratch/pods.yaml")))
  done
  inject <"$kubernetes/function/train.yaml" >"$scratch/once"
  valid_for 1.29 "$scratch/once"
  inject --remove <"$scratch/once" | cmp - "$kubernetes/function/train.yaml"
  say "$pods pods of all kinds are valid for 1.29 and ${validator%.*}, strictly; remove gives back every byte"
}

# kustomize runs `paceline inject` in a container while it builds.
function_of_kustomize() {
  need_kustomize
  need_engine
  docker image inspect paceline/allocator:0.1.0 >/dev/null 2>&1 || skip "the image of the allocator is missing"
  docker_build --quiet --tag paceline/inject:0.1.0 "$kubernetes/function" >&2
  kubectl kustomize --enable-alpha-plugins "$kubernetes/function" >"$scratch/built.yaml"
  docker image rm paceline/inject:0.1.0 >/dev/null
  mkdir "$scratch/plain"
  cp "$kubernetes/function/train.yaml" "$scratch/plain"
  echo 'resources: [train.yaml]' >"$scratch/plain/kustomization.yaml"
  grep -q paceline-sidecar "$scratch/built.yaml" || die "the sidecar is missing: $(cat "$scratch/built.yaml")"
  inject --remove <"$scratch/built.yaml" | cmp - <(kubectl kustomize "$scratch/plain")
  say "kustomize builds with the sidecar; remove gives what it builds without"
}

# Plays a manifest in podman: $1 its file, $2 the pod and container with the endpoint, $3 its program there,
# $4 the exit code with which SIGTERM ends it, $5 what its variables or its command must contain.
play() {
  type -P podman >/dev/null || skip "podman is missing"
  command podman kube play --help >/dev/null 2>&1 || skip "$(command podman --version) is too old"
  [ "$(id -u)" = 0 ] || skip "podman is tried as root only"
  need_images
  validator
  # By default podman raises limits to the kernel's maximum, which not every root may.
  cat >"$scratch/containers.conf" <<CONF
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
CONF
  "$venv/bin/python" tests/deploy/pod.py "$1" "$job_image" "$deploy/train.py" \
    >"$scratch/pod.yaml"
  local ours
  ours=$(sed -n 's/^ *image: \(paceline.*\)/\1/p' "$1" | sort --unique)
  podman image exists "$job_image" || docker save "$ours" "$job_image" | podman load --quiet
  podman kube play --network none "$scratch/pod.yaml"
  within 30 podman exec "$2" "$3" healthcheck --ready
  local code given
  given=$(podman inspect --format '{{.Config.Env}} {{.Config.Entrypoint}} {{.Config.Cmd}} {{.Args}}' "$2")
  [[ $given == *"$5"* ]] || die "the pod's settings do not reach it: $given"
  podman stop --time 10 "$2" >/dev/null
  code=$(podman inspect --format '{{.State.ExitCode}}' "$2")
  podman kube down "$scratch/pod.yaml"
  [ "$code" = "$4" ] || die "SIGTERM ended it with exit code $code, not $4"
  say "$(podman --version): ready, and ends at SIGTERM"
}

# Plays what `paceline inject` makes of a manifest: $1 to $4 as for `play`.
play_injected() {
  type -P podman >/dev/null || skip "podman is missing"
  need_engine
  docker image inspect paceline/allocator >/dev/null 2>&1 || skip "the image of the allocator is missing"
  inject <"$1" >"$scratch/injected.yaml"
  play "$scratch/injected.yaml" "$2" "$3" "$4" --acceptable=0.3
}

# Checks a unit without running it: $1 its name, $2 ten times its largest exposure.
unit() {
  command -v systemd-analyze >/dev/null || skip "systemd is missing"
  local unit="$scratch/$1" version
  version=$(systemd-analyze --version | awk 'NR == 1 {print $2}')
  ((version >= 250)) || skip "systemd $version checks no files: 250 does"
  # Only the existence of the program matters here.
  sed 's|/usr/local/bin/paceline[a-z-]*|/bin/true|' "$deploy/$1" >"$unit"
  systemd-analyze verify --man=no --recursive-errors=no "$unit"
  systemd-analyze security --no-pager --offline=true --threshold="$2" "$unit" | tail -n 1
}

allocator_image() {
  need_engine
  allocator/image.sh
  docker run --rm --network none paceline/allocator --version
  local code=0 said
  said=$(docker run --rm --network none paceline/allocator simulate FC-3 2>&1) || code=$?
  [[ $code = 2 && $said == *"cargo build"* ]] || die "a daemon's simulate ends with $code: $said"
}

need_allocator() {
  need_images
  docker image inspect paceline/allocator >/dev/null 2>&1 || skip "the image of the allocator is missing"
}

# Starts two jobs with a limit of half a CPU: one of root on its loopback, and one of another user on a
# socket that is closed to all others.
start_jobs() {
  mkdir -p "$scratch/program" "$scratch/state" "$scratch/run"
  chmod 777 "$scratch/program"
  docker run --rm --network none --volume "$scratch/program:/paceline" paceline/sidecar install /paceline
  start_job loopback
  start_job socket --user 65532:65532 --env PACELINE_LISTEN=unix:/tmp/job.sock \
    --label paceline.endpoint=unix:/tmp/job.sock
}
start_job() {
  local job=$name-$1
  shift
  docker run --detach --name "$job" --label paceline.enable=true --label "paceline.test=$name" \
    --label paceline.max-cpus=0.5 --volume "$scratch/program:/paceline:ro" \
    --volume "$PWD/$deploy/train.py:/train.py:ro" "$@" "$job_image" \
    /paceline/paceline-sidecar exec -- python3 -u /train.py 1000000 >/dev/null
}
end_jobs() { docker rm --force --volumes "$name-loopback" "$name-socket" >/dev/null; }
# The quota in force, in microseconds of 100 ms; -1 or max without a limit.
quota_of() {
  docker exec "$1" sh -c 'cut -d " " -f 1 /sys/fs/cgroup/cpu.max 2>/dev/null ||
    cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us'
}
cpus_of() { echo "$(quota_of "$name-loopback") $(quota_of "$name-socket")"; }
are_limited() { [ "$(cpus_of)" = "50000 50000" ]; }
are_free() { [[ $(cpus_of) =~ ^(-1|max)\ (-1|max)$ ]]; }

allocator_by_compose() {
  need_allocator
  command -v "${compose[0]}" >/dev/null || skip "neither 'docker compose' nor docker-compose is installed"
  local version container
  version=$("${compose[@]}" version --short)
  mkdir "$scratch/compose"
  cp "$deploy/allocator-compose.yaml" "$deploy/paceline.toml" "$scratch/compose"
  # Version 1 of compose lacks this key; where it is still in use, the host's namespace is the default.
  [[ $version != 1.* ]] || sed -i '/^ *cgroup: host$/d' "$scratch/compose/allocator-compose.yaml"
  cat >"$scratch/compose/test.yaml" <<YAML
services:
  allocator:
    command: [run, --config, /etc/paceline/paceline.toml, --with-label, paceline.test=$name]
YAML
  # Version 1 of compose needs it in both files.
  sed -n '/^version:/p' "$scratch/compose/allocator-compose.yaml" >>"$scratch/compose/test.yaml"
  start_jobs
  allocator_compose up --detach
  within 30 are_limited
  container=$(allocator_compose ps --quiet allocator)
  docker logs "$container" 2>&1 | grep '"message":"allocator runs"' | head -n 1
  allocator_compose stop
  are_free || die "limits remain: $(cpus_of)"
  local code
  code=$(docker inspect --format '{{.State.ExitCode}}' "$container")
  [ "$code" = 0 ] || die "SIGTERM ended it with exit code $code: $(docker logs "$container" 2>&1)"
  allocator_compose down
  end_jobs
  say "compose $version: jobs are limited, and at the end every limit is back"
}

# The system calls of systemd's groups.
calls_of() {
  local word
  systemd-analyze syscall-filter "$1" | sed -n 's/^ \+\([@a-z0-9_-]\+\)$/\1/p' | while read -r word; do
    case $word in
      @*) calls_of "$word" ;;
      *) echo "$word" ;;
    esac
  done | sort --unique
}

# Runs the allocator with the unit's capabilities and system calls and no others.
confined() {
  local capabilities
  read -ra capabilities < <(sed -n 's/^CapabilityBoundingSet=//p' "$deploy/paceline.service")
  docker run --pid host --network host --read-only --cap-drop ALL "${capabilities[@]/#/--cap-add=}" \
    --security-opt no-new-privileges --security-opt apparmor=unconfined \
    --security-opt "seccomp=$scratch/seccomp.json" --volume /var/run/docker.sock:/var/run/docker.sock \
    --volume /sys/fs/cgroup:/sys/fs/cgroup --volume "$scratch/state:/var/lib/paceline" \
    --volume "$scratch/run:/run/paceline" "$@"
}

unit_is_enough() {
  need_allocator
  command -v systemd-analyze >/dev/null || skip "systemd is missing"
  # RestrictNamespaces=net: 0x40000000 is CLONE_NEWNET.
  {
    echo '{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": ['
    echo '{"action": "SCMP_ACT_ALLOW", "names": ["setns"],'
    echo '"args": [{"index": 1, "value": 1073741824, "op": "SCMP_CMP_EQ"}]},'
    echo '{"action": "SCMP_ACT_ALLOW", "names": ['
    comm -23 <(calls_of @system-service) <(calls_of @privileged) |
      sed '/^setns$/d; s/.*/"&"/' | paste -s -d ,
    echo ']}]}'
  } >"$scratch/seccomp.json"
  start_jobs
  confined --detach --name "$name-allocator" paceline/allocator run --policy none \
    --with-label "paceline.test=$name" >/dev/null
  within 30 are_limited
  docker kill "$name-allocator" >/dev/null
  are_limited || die "a killed allocator has left no limit: $(cpus_of)"
  confined --rm paceline/allocator restore
  are_free || die "limits remain: $(cpus_of)"
  end_jobs
  say "its capabilities and system calls are enough to run and to restore after a kill"
}

check "image" image
check "image of a job" python_image
check "restricted container" restricted
check "install" installed
check "compose.yaml" by_compose
check "manifests" manifests
check "overlays of the allocator" overlays
check "sidecar/job.yaml, its sidecar as a container" \
  play "$kubernetes/sidecar/job.yaml" train-sidecar /paceline-sidecar 0 PACELINE_ACCEPTABLE=0.3
check "sidecar/exec-job.yaml" \
  play "$kubernetes/sidecar/exec-job.yaml" train-exec-job /paceline/paceline-sidecar 143 PACELINE_ACCEPTABLE=0.3
check "paceline-sidecar@.service" unit paceline-sidecar@.service 10
check "paceline.service" unit paceline.service 39
check "image of the allocator" allocator_image
check "inject" injected
check "inject, as a function of kustomize" function_of_kustomize
check "inject, a wrapped job" play_injected "$kubernetes/function/train.yaml" train-job /paceline/paceline-sidecar 143
check "inject, a sidecar that reads a log" \
  play_injected tests/deploy/follows-log.yaml train-paceline-sidecar /paceline-sidecar 0
check "allocator-compose.yaml" allocator_by_compose
check "paceline.service, its confinement" unit_is_enough

printf '%s\n' "" "${table[@]}"
exit "$failed"
