# Read by the tests of the Kubernetes test bed: what they look at, and what they wait for. Needs $work and $paceline.
failed=0
declare -A allocators=() groups=() owned=()

check() {
  local what=$1; shift
  if "$@"; then echo "ok      $what"; else echo "FAILED  $what"; failed=1; fi
}
# What must hold within some seconds, $2. They are many, since a busy machine takes its time.
check_soon() { local what=$1 most=$2; shift 2; check "$what" eventually "$most" "$@"; }
part() { echo "---     $1 (second $SECONDS)"; }
up() { "$HERE/up.sh" "$1" "$work/images.tar" || exit 1; }

id_of() { kubectl get pod "$1" -o jsonpath="{.status.containerStatuses[?(@.name==\"${2:-train}\")].containerID}" | sed 's#.*/##'; }
group_of() { find /sys/fs/cgroup/cpu/$PREFIX-n* -type d -name "$(id_of "$@")"; }
# Quota and weight of a pod's container in the kernel.
limits_of() { echo "$(cat "${groups[$1]}/cpu.cfs_quota_us")/$(cat "${groups[$1]}/cpu.shares")"; }
quota_of() { cat "${groups[$1]}/cpu.cfs_quota_us"; }
has_quota() { [ "$(quota_of "$1")" = "$2" ]; }
# Whether a pod's quota is another than its owner's.
moves() { ! has_quota "$1" "${owned[$1]%/*}"; }
# Reads what the owners of these pods have set.
note() { local pod; for pod in "$@"; do groups[$pod]=$(group_of "$pod"); owned[$pod]=$(limits_of "$pod"); done; }
exists() { [ -n "$(kubectl get pod "$1" --ignore-not-found -o name)" ]; }
forget() { unset "groups[$1]" "owned[$1]"; }
as_owned() { [ "$(limits_of "$1")" = "${owned[$1]}" ]; }
all_as_owned() {
  local pod
  for pod in "${!owned[@]}"; do
    as_owned "$pod" && continue
    echo "        $pod: $(limits_of "$pod") in place of ${owned[$pod]}"; return 1
  done
}
show() { local pod; for pod in "${!groups[@]}"; do printf '        %-11s %s\n' "$pod" "$(limits_of "$pod")"; done | sort; }
# Whether the quotas stay within request and limit for some samples.
within() {
  local n quota
  for n in $(seq 20); do
    quota=$(quota_of steep); [ "$quota" -ge 30000 ] && [ "$quota" -le 200000 ] || { echo "        steep $quota"; return 1; }
    quota=$(quota_of flat); [ "$quota" -ge 20000 ] && [ "$quota" -le 150000 ] || { echo "        flat $quota"; return 1; }
    sleep 0.5
  done
}
# The share of the node that is this quota, as an order states it.
share() { awk -v quota="$1" -v cpus="$(nproc)" 'BEGIN {printf "%.4f%%", quota / 1000 / cpus}'; }

running() { [ "$(kubectl get pods --no-headers | grep -c Running)" = "$1" ]; }
deploy() {
  kubectl apply --validate=false -f "$HERE/pods.yaml" >/dev/null
  eventually 400 running "$1" || { kubectl get pods; exit 1; }
  kubectl get pods
}
restarts() { kubectl get pods -o jsonpath='{range .items[*]}{.status.containerStatuses[*].restartCount}{" "}{end}'; }
never_restarted() { [ -z "$(restarts | tr -d '0 ')" ]; }
# The last report of a node's kubelet about itself is younger than $2, in seconds since 1970.
heard_of() {
  local at; at=$(kubectl get lease "$1" -n kube-node-lease -o jsonpath='{.spec.renewTime}')
  [ "$(date -d "$at" +%s)" -gt "$2" ]
}

on() { local node=$1; shift; "$paceline" "$@" --runtime cri --cri "unix://$(socket_of "$node")"; }
# Starts the allocator of a node as a program, with these arguments.
allocate() {
  local node=$1; shift
  "$paceline" run --runtime cri --cri "unix://$(socket_of "$node")" --state-dir "$work/$node" \
    --control "$work/$node.sock" --listen none "$@" >>"$work/$node.log" 2>&1 &
  allocators[$node]=$!
}
finish() { kill "-$1" "${allocators[$2]}"; wait "${allocators[$2]}" 2>/dev/null; local code=$?; unset "allocators[$2]"; return $code; }
says() { grep -q -- "$2" "$work/$1.log"; }
# Whether an order to a node's allocator is refused in these words.
refuses() { local node=$1 words=$2; shift 2; grep -q -- "$words" <("$paceline" "$@" --control "$work/$node.sock" 2>&1); }
order() { local node=$1; shift; "$paceline" "$@" --control "$work/$node.sock" >/dev/null; }
# What a node's allocator says of its jobs, if a job has not moved.
story() {
  moves "$2" || { "$paceline" status --control "$work/$1.sock"; "$paceline" explain "$2" --state-dir "$work/$1"; tail -5 "$work/$1.log"; } 2>&1 | sed 's/^/        /'
}

# The DaemonSet's pod of a node, its process, and a command in it.
pod_on() { kubectl -n paceline get pods -l app.kubernetes.io/name=paceline --field-selector "spec.nodeName=$1" -o jsonpath='{.items[*].metadata.name}'; }
inside_pod_of() { local node=$1; shift; kubectl -n paceline exec "$(pod_on "$node")" -- /paceline "$@"; }
process_on() {
  local id; id=$(kubectl -n paceline get pod "$(pod_on "$1")" -o jsonpath='{.status.containerStatuses[0].containerID}')
  cat "$(find /sys/fs/cgroup/cpu/$PREFIX-"$1" -type d -name "${id##*/}")/cgroup.procs" | head -1
}
# SYS_ADMIN, SYS_PTRACE, DAC_OVERRIDE and SYS_NICE.
has_its_capabilities() {
  local status; status=/proc/$(process_on "$1")/status
  for set in CapEff CapPrm CapBnd; do
    [ "$(awk -v set="$set:" '$1 == set {print $2}' "$status")" = 0000000000a80002 ] || { grep Cap "$status"; return 1; }
  done
}
# What an account may do. Every account may ask about itself.
rights() { kubectl auth can-i --list --as "system:serviceaccount:$1" --as-group system:serviceaccounts --as-group system:authenticated 2>/dev/null; }
has_no_rights() { [ -n "$(rights paceline:paceline)" ] && [ "$(rights paceline:paceline)" = "$(rights nowhere:unknown)" ]; }
has_no_token() {
  local paths; paths=$(kubectl -n paceline get pod "$(pod_on "$1")" -o jsonpath='{.spec.containers[*].volumeMounts[*].mountPath}')
  [ -n "$paths" ] && [[ $paths != *serviceaccount* ]]
}
