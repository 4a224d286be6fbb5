#!/bin/bash
# up.sh NODES IMAGES: a Kubernetes of its own on this machine: a control plane, and nodes that each have a
# network, a host name and mounts of their own. KUBELET holds more arguments of the kubelets.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
nodes=$1 images=$2
mkdir -p "$RUN"
cd "$RUN"

network() {
  ip netns add $PREFIX-switch
  ip -n $PREFIX-switch link add br0 type bridge
  ip -n $PREFIX-switch link set br0 up
  ip link add $PREFIX-host type veth peer name host netns $PREFIX-switch
  ip -n $PREFIX-switch link set host master br0 up
  ip addr add $NETWORK.1/24 dev $PREFIX-host
  ip link set $PREFIX-host up
}

certificates() {
  openssl req -x509 -newkey rsa:2048 -nodes -days 2 -keyout ca.key -out ca.crt -subj /CN=bed
  openssl req -newkey rsa:2048 -nodes -keyout api.key -out api.csr -subj /CN=api
  echo "subjectAltName=IP:$NETWORK.1,IP:10.97.0.1" >api.names
  openssl x509 -req -in api.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 -extfile api.names -out api.crt
  openssl genrsa -out accounts.key 2048
}

control_plane() {
  certificates 2>/dev/null
  (umask 077; token=$(openssl rand -hex 16); echo "$token,bed,1,system:masters" >tokens
    cat >kubeconfig <<Y
apiVersion: v1
kind: Config
clusters: [{name: bed, cluster: {server: "https://$API", certificate-authority: $RUN/ca.crt}}]
users: [{name: bed, user: {token: $token}}]
contexts: [{name: bed, context: {cluster: bed, user: bed}}]
current-context: bed
Y
  )
  start etcd "$BIN/etcd" --data-dir "$RUN/etcd" --unsafe-no-fsync \
    --listen-client-urls http://127.0.0.1:24790 --advertise-client-urls http://127.0.0.1:24790 \
    --listen-peer-urls http://127.0.0.1:24800
  start api "$BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:24790 --allow-privileged \
    --bind-address=$NETWORK.1 --advertise-address=$NETWORK.1 --secure-port=${API#*:} \
    --tls-cert-file=api.crt --tls-private-key-file=api.key --token-auth-file=tokens --authorization-mode=RBAC \
    --kubelet-client-certificate=api.crt --kubelet-client-key=api.key --kubelet-preferred-address-types=InternalIP \
    --service-cluster-ip-range=10.97.0.0/24 --service-account-issuer=https://bed \
    --service-account-signing-key-file=accounts.key --service-account-key-file=accounts.key
  eventually 240 kubectl get --raw /readyz
  start scheduler "$BIN/kube-scheduler" --kubeconfig=kubeconfig --leader-elect=false --port=0 \
    --bind-address=127.0.0.1 --secure-port=17259
  start manager "$BIN/kube-controller-manager" --kubeconfig=kubeconfig --leader-elect=false --port=0 \
    --bind-address=127.0.0.1 --secure-port=17257 --service-account-private-key-file=accounts.key --root-ca-file=ca.crt
  eventually 120 kubectl get serviceaccount default
}

# $1 is the node's number.
configure() {
  local home=$RUN/n$1
  cat >"$home/net/bed.conflist" <<Y
{"cniVersion": "0.4.0", "name": "bed", "plugins": [{"type": "bridge", "bridge": "pods", "isGateway": true,
  "ipam": {"type": "host-local", "dataDir": "$home/ipam", "ranges": [[{"subnet": "10.88.$1.0/24"}]]}}]}
Y
  cat >"$home/containerd.toml" <<Y
version = 2
root = "$home/data"
state = "$home/state"
[grpc]
address = "$home/run/containerd.sock"
[ttrpc]
address = "$home/containerd.ttrpc"
[plugins."io.containerd.internal.v1.opt"]
path = "$home/opt"
[plugins."io.containerd.nri.v1.nri"]
disable = true
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "bed/pause:1"
restrict_oom_score_adj = true
tolerate_missing_hugetlb_controller = true
disable_apparmor = true
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "$CACHE/cni"
conf_dir = "$home/net"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
BinaryName = "$(command -v runc)"
SystemdCgroup = false
Y
}

node() {
  local number=$1 name=n$1 home=$RUN/n$1 group
  mkdir -p "$home"/{net,logs,links,run,paceline}
  configure "$number"
  for group in $HIERARCHIES; do mkdir -p /sys/fs/cgroup/$group/$PREFIX-$name; done
  for group in cpus mems; do
    cat /sys/fs/cgroup/cpuset/cpuset.$group >/sys/fs/cgroup/cpuset/$PREFIX-$name/cpuset.$group
  done
  ip netns add $PREFIX-$name
  ip -n $PREFIX-switch link add $name type veth peer name eth0 netns $PREFIX-$name
  ip -n $PREFIX-switch link set $name master br0 up
  ip -n $PREFIX-$name link set lo up
  ip -n $PREFIX-$name addr add $NETWORK.1$number/24 dev eth0
  ip -n $PREFIX-$name link set eth0 up
  ip -n $PREFIX-$name route add default via $NETWORK.1
  # runc must not see the hierarchy of version 2 beside those of version 1, and the kubelet has fixed folders.
  start $name-containerd nsenter --net=/run/netns/$PREFIX-$name unshare --mount --uts sh -c "
    hostname $name
    umount /sys/fs/cgroup/unified 2>/dev/null
    mount -t tmpfs none /var/lib/kubelet && mount -t tmpfs none /run/netns &&
    mount --bind $home/logs /var/log/pods && mount --bind $home/links /var/log/containers &&
    mount --bind $home/paceline /var/lib/paceline && mount --bind $home/run /run/containerd &&
    echo \$\$ >$home/holder.pid && exec env PATH=$BIN:\$PATH $BIN/containerd --config $home/containerd.toml"
  eventually 120 "$BIN/ctr" -a "$(socket_of "$name")" version
  "$BIN/ctr" -a "$(socket_of "$name")" -n k8s.io images import "$images" >/dev/null
  "$HERE/kubelet.sh" $name
}

for folder in $COVERED; do
  # Only what was made here is removed at the end.
  [ -d "$folder" ] || { mkdir -p -m 700 "$folder"; echo "$folder" >>"$RUN/made"; }
done
network
control_plane
for number in $(seq "$nodes"); do node "$number"; done
ready() { [ "$(kubectl get nodes --no-headers | grep -c ' Ready')" = "$nodes" ]; }
eventually 180 ready
kubectl get nodes -o wide
