#!/bin/bash
# kubelet.sh NODE: starts a node's kubelet, after its end if it runs.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
name=$1 home=$RUN/$1
cd "$RUN"
end "$name-kubelet"
start "$name-kubelet" nsenter -t "$(cat "$home/holder.pid")" -m -n -u -- "$BIN/kubelet" --kubeconfig="$RUN/kubeconfig" \
  --hostname-override="$name" --node-ip=$NETWORK.1"${name#n}" --root-dir="$home/kubelet" \
  --container-runtime=remote --container-runtime-endpoint="unix://$(socket_of "$name")" \
  --cgroup-driver=cgroupfs --cgroup-root=/$PREFIX-"$name" --cert-dir="$home/pki" --volume-plugin-dir="$home/plugins" \
  --anonymous-auth=false --client-ca-file="$RUN/ca.crt" --authorization-mode=AlwaysAllow --read-only-port=0 --fail-swap-on=false \
  --eviction-hard= --image-gc-high-threshold=100 --node-status-update-frequency=4s ${KUBELET:-} --v=1
