#!/bin/bash
# tests.sh PARTS PACELINE SIDECAR TOY_JOB: the allocator on a real Kubernetes. Each line is ok or FAILED.
# PARTS is `core`, `all`, or names of parts.
set -uo pipefail
. "$(dirname "$0")/settings.sh"
parts=$1 paceline=$2 sidecar=$3 job=$4
[ "$(id -u)" = 0 ] || { echo "cannot make a Kubernetes: this needs root" >&2; exit 1; }
[ -d /sys/fs/cgroup/cpu ] || { echo "skipped: Kubernetes 1.20 needs cgroup v1 here"; exit 0; }
version=$("$paceline" --version | awk '{print $2}')
work=$(mktemp -d)
. "$HERE/checks.sh"
leave() {
  for node in "${!allocators[@]}"; do kill "${allocators[$node]}" 2>/dev/null; done
  wait 2>/dev/null
  "$HERE/down.sh" || failed=1
  rm -rf "$work"
}
trap 'code=$?; leave; [ $code != 0 ] || code=$failed; exit $code' EXIT
trap 'exit 130' INT TERM

# The DaemonSet as it is shipped, and a job with the injected sidecar.
daemon_set() {
  part "the DaemonSet"
  kubectl apply --validate=false -k "$HERE/../../examples/deploy/kubernetes/base" >/dev/null
  check "the DaemonSet is ready on both nodes" kubectl -n paceline rollout status daemonset/paceline --timeout=300s
  local node
  for node in n1 n2; do
    check "it has exactly its four capabilities on $node" has_its_capabilities $node
    check "it has no token on $node" has_no_token $node
  done
  check "its account has no rights of its own" has_no_rights
  check_soon "it moves a quota on n1" 180 moves flat
  check_soon "it moves a quota on n2" 180 moves free
  check "a guaranteed pod is watched only" as_owned guaranteed
  check "a pod that did not opt in is left alone" as_owned other
  check "the status names the guaranteed pod's reason" grep -q "its pod is guaranteed" <(inside_pod_of n1 status --json)
  check "the status names the pod with several containers" \
    grep -q "its pod has several containers (one, two)" <(kubectl -n paceline logs "$(pod_on n1)")
  check_soon "the log names the pod without an image" 120 logs_unpulled
  injected
  check "the kubelet is restarted" restart_kubelet
  check "a restarted kubelet leaves the pinned quota" has_quota flat 60000
  # It is gone before its pods are.
  kubectl -n paceline delete daemonset paceline >/dev/null
  check_soon "the DaemonSet's pods end" 180 no_allocators
  check "deleting the DaemonSet restores all limits" all_as_owned
  check "no container was restarted: $(restarts)" never_restarted
  kubectl delete pod keras --now --timeout=180s >/dev/null
  forget keras
}
logs_unpulled() { grep -q "default/unpulled" <(kubectl -n paceline logs "$(pod_on n1)"); }
no_allocators() { [ -z "$(kubectl -n paceline get pods -o name)" ]; }
restart_kubelet() {
  inside_pod_of n1 pin flat "$(share 60000)" && has_quota flat 60000 || return 1
  local at; at=$(date +%s)
  "$HERE/kubelet.sh" n1 && eventually 120 heard_of n1 "$((at + 1))"
}
injected() {
  check "the API server accepts a pod with the sidecar" is_accepted keras.yaml
  check "and each kind that it knows" is_accepted kinds.yaml
  inject keras.yaml | kubectl apply --validate=false -f - >/dev/null
  check "the injected pod runs" kubectl wait --for=condition=Ready pod/keras --timeout=180s
  # An allocator runs: the limits that the pod has now may be the allocator's. These are those of keras.yaml.
  groups[keras]=$(group_of keras)
  owned[keras]=100000/204
  check_soon "the allocator orders it by the losses that it prints" 240 orders_keras
}
inject() { "$paceline" inject -f "$HERE/$1" 2>"$work/injected" || { cat "$work/injected" >&2; return 1; }; }
is_accepted() { inject "$1" | kubectl apply --validate=false --dry-run=server -f - >/dev/null; }
orders_keras() { inside_pod_of n1 status --json | python3 "$HERE/keras.py"; }

# The allocator as a program, under these policies.
policies() {
  part "policies"
  local policy parameters node
  for policy in paceline flowcon; do
    # FlowCon limits nothing when all losses fall by less than alpha: on a slow machine the steep one may. The
    # flat one's never falls.
    parameters=(); [ $policy = flowcon ] && parameters=(--param interval=2 --param alpha=0.0001)
    for node in n1 n2; do allocate $node --policy $policy "${parameters[@]}"; done
    check_soon "$policy moves a quota on node n1" 180 moves flat; story n1 flat
    check_soon "$policy moves a quota on node n2" 180 moves free; story n2 free
    check "$policy stays between request and limit" within
    show
    check "$policy ends by SIGTERM" finish TERM n1
    check "$policy ends by SIGTERM on the other node" finish TERM n2
    check "all limits are as their owners set them" all_as_owned
  done
}

# Orders, a kill, and a pod that goes meanwhile.
kill_restore() {
  part "orders and a kill"
  allocate n1 --policy paceline
  check_soon "a quota moves before the kill" 180 moves flat; story n1 flat
  check "a pin below the request is refused" refuses n1 "below the request of 0.2 CPUs" pin flat "$(share 10000)"
  check "a pin above the limit is refused" refuses n1 "above the container's own limit of 1.50 CPUs" pin flat "$(share 180000)"
  check "a pin between them is in force" eval 'order n1 pin flat "$(share 60000)" && has_quota flat 60000'
  finish KILL n1
  check "the kill leaves the quota" has_quota flat 60000
  kubectl delete pod steep --now --timeout=180s >/dev/null
  forget steep
  check "paceline restore" on n1 restore --state-dir "$work/n1"
  check "all limits are as their owners set them" all_as_owned
  check "no container was restarted: $(restarts)" never_restarted
}

# The socket is missing at the start, and goes during a run; a pod goes in mid-write.
socket() {
  part "the socket, and a pod that goes"
  "$paceline" check flat --runtime cri --cri "unix://$RUN/none.sock" 2>/dev/null
  check "a missing socket is no engine" [ $? = 3 ]
  timeout 120 "$paceline" run --runtime cri --cri "unix://$RUN/none.sock" --state-dir "$work/none" --control "$work/none.sock" \
    --listen none >"$work/none.log" 2>&1
  check "an allocator does not start without its socket" [ $? = 3 ]
  check "and names it" says none "$RUN/none.sock"
  on n1 check no-such-pod 2>/dev/null
  check "an unknown pod is wrong usage" [ $? = 2 ]
  kubectl apply --validate=false -f "$HERE/pods.yaml" >/dev/null
  kubectl wait --for=condition=Ready pod/steep --timeout=300s >/dev/null
  note steep
  allocate n1 --policy paceline
  check_soon "a quota moves before the file of the socket goes" 180 moves flat
  mv "$(socket_of n1)" "$(socket_of n1).away"
  # The connection outlives the file.
  check_soon "an allocator obeys without the socket's file" 60 order n1 pin flat "$(share 60000)"
  mv "$(socket_of n1).away" "$(socket_of n1)"
  check "the order is in force" has_quota flat 60000
  check_soon "an order reaches the pod" 60 order n1 pin steep "$(share 60000)"
  # Orders are given while the request to delete it is on its way, and until it is gone.
  kubectl delete pod steep --wait=false >/dev/null &
  local deletion=$! quota=40000 writes=0 end=$((SECONDS + 180))
  forget steep
  while [ $SECONDS -lt $end ]; do
    order n1 pin steep "$(share $quota)" 2>/dev/null && writes=$((writes + 1))
    exists steep || break
    quota=$((quota == 40000 ? 80000 : 40000))
  done
  wait $deletion
  check "the pod is gone" eval '! exists steep'
  check "a pod went in mid-write, after $writes writes" [ $writes -gt 0 ]
  check "others are managed" eval 'order n1 pin flat "$(share 70000)" && has_quota flat 70000'
  check "the allocator ends by SIGTERM" finish TERM n1
  check "all limits are as their owners set them" all_as_owned
}

# The static CPU manager undoes what is written into files, and keeps what CRI has written.
static() {
  part "the static CPU manager"
  KUBELET="--cpu-manager-policy=static --kube-reserved=cpu=200m --cpu-manager-reconcile-period=5s" up 1
  deploy 5
  note flat
  allocate n1 --policy paceline
  # The policy may rightly lift a limit. What an order holds stays.
  check_soon "a quota is pinned under the static CPU manager" 120 order n1 pin flat "$(share 60000)"
  local second held=yes
  for second in $(seq 60); do has_quota flat 60000 || held="no, at second $second: $(quota_of flat)"; sleep 1; done
  check "it is held for 60 s: $held" [ "$held" = yes ]
  check "no drift was found" eval '! says n1 "changed outside"'
  check "and is restored" finish TERM n1
  check "all limits are as their owners set them" all_as_owned
}

# The benchmark workloads, with the images of `make images`.
workloads() {
  part "VAE and MNIST"
  local data node one policy
  docker image inspect paceline/workloads:latest >/dev/null 2>&1 || { echo "skipped paceline/workloads is missing: make images"; return; }
  data=$("$HERE/../../images/data.sh" | tail -n 1)
  up 2
  docker save -o "$work/workloads.tar" paceline/workloads:latest
  for node in n1 n2; do
    "$BIN/ctr" -a "$(socket_of $node)" -n k8s.io images import "$work/workloads.tar" >/dev/null
    for one in "vae 100" "mnist 20"; do
      sed -e "s/@NODE@/${node#n}/; s/@MODEL@/${one% *}/; s/@EPOCHS@/${one#* }/; s#@DATA@#$data#" "$HERE/workloads.yaml" |
        kubectl apply --validate=false -f - >/dev/null
    done
  done
  check "four workloads run" eventually 400 running 4
  note vae-1 mnist-1 vae-2 mnist-2
  for policy in paceline flowcon; do
    for node in n1 n2; do allocate $node --policy $policy; done
    check_soon "$policy moves a quota of a workload on n1" 300 eval 'moves vae-1 || moves mnist-1'
    check_soon "$policy moves a quota of a workload on n2" 300 eval 'moves vae-2 || moves mnist-2'
    show
    check "$policy ends by SIGTERM" finish TERM n1
    check "$policy ends by SIGTERM on the other node" finish TERM n2
    check "all limits are as their owners set them" all_as_owned
  done
  check "no container was restarted: $(restarts)" never_restarted
}

# What the allocator costs beside many pods, and how soon it reacts.
cost() {
  part "cost and reaction"
  up 1
  check "both are within their bounds" "${CARGO:-cargo}" bench --locked --package paceline-system-tests --bench kube -- \
    "unix://$(socket_of n1)" "$BIN/kubectl"
}

case $parts in
  core) parts="daemon_set kill_restore" ;;
  all) parts="daemon_set policies kill_restore socket static workloads cost" ;;
esac
for one in $parts; do
  case $one in
    daemon_set | policies | kill_restore | socket | static | workloads | cost) ;;
    *)
      echo "unknown part $one: expected core, all, daemon_set, policies, kill_restore, socket, static, workloads or cost" >&2
      exit 2
      ;;
  esac
done
"$HERE/down.sh"
python3 "$HERE/image.py" "$work/images.tar" "$version" "$BIN/busybox" "$job" "$paceline" "$sidecar" || exit 1
# These have nodes of their own.
own=" static workloads cost "
if [[ $own != *" $parts "* ]]; then
  up 2
  deploy 7
  note steep flat free named guaranteed other
  show
fi
for one in $parts; do
  case $one in
    static | workloads | cost) "$HERE/down.sh"; groups=() owned=(); $one ;;
    *) $one ;;
  esac
done
part "the end"
