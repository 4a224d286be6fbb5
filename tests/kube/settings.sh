# Read by the scripts of the Kubernetes test bed: where everything lies.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# What is fetched and built once.
CACHE=${PACELINE_KUBE:-${XDG_CACHE_HOME:-$HOME/.cache}/paceline/kube}
BIN=$CACHE/bin
RUN=$CACHE/run
# The nodes' network, the API server's address in it, and the group of each node's pods.
NETWORK=10.89.0
API=$NETWORK.1:17443
PREFIX=plk
# Folders of the machine, each of which a folder of the node covers.
COVERED="/var/lib/kubelet /var/log/pods /var/log/containers /var/lib/paceline /run/containerd"
HIERARCHIES="blkio cpu cpuacct cpuset devices freezer memory pids systemd"
PROGRAMS="kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl etcd containerd busybox"
export KUBECONFIG=$RUN/kubeconfig

kubectl() { "$BIN/kubectl" "$@"; }
# Waits until a command succeeds; $1 is the longest time in seconds.
eventually() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $end ] || { echo "timed out: $*" >&2; return 1; }
    sleep 0.2
  done
}
# Starts a program with its own session, its log and the file of its process id.
start() {
  local name=$1; shift
  setsid "$@" >"$RUN/$name.log" 2>&1 </dev/null &
  echo $! >"$RUN/$name.pid"
}
# Ends a program that `start` started, and waits for its end.
end() {
  local pid; pid=$(cat "$RUN/$1.pid" 2>/dev/null) || return 0
  kill "$pid" 2>/dev/null || true
  for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  kill -9 "$pid" 2>/dev/null || true
  rm -f "$RUN/$1.pid"
}
# In each node, the folder of the runtime's socket is /run/containerd.
socket_of() { echo "$RUN/$1/run/containerd.sock"; }
# Runs a command among the mounts, network and name of a node.
inside() { local node=$1; shift; nsenter -t "$(cat "$RUN/$node/holder.pid")" -m -n -u -- "$@"; }
