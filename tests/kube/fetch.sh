#!/bin/bash
# Gets the programs of the test bed into the cache, once. Nothing is installed. Kubernetes 1.20 is
# built from Debian's source, which takes minutes of two CPUs and needs Go (`apt-get install golang-go`).
# With `--built` it only says by its exit code whether all are there.
set -euo pipefail
. "$(dirname "$0")/settings.sh"
missing=(); for one in $PROGRAMS; do [ -x "$BIN/$one" ] || missing+=("$one"); done
[ ${#missing[@]} -gt 0 ] || exit 0
[ "${1:-}" != --built ] || exit 1
echo "to be fetched or built: ${missing[*]}"
mkdir -p "$BIN" "$CACHE/apt/lists/partial" "$CACHE/apt/archives/partial"
mirror=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources)
keys=/usr/share/keyrings/debian-archive-keyring.gpg
for suite in bookworm trixie; do
  echo "deb [signed-by=$keys] $mirror $suite main"
done >"$CACHE/apt/sources.list"
echo "deb-src [signed-by=$keys] $mirror bookworm main" >>"$CACHE/apt/sources.list"
apt=(-qq -o Dir::Etc::SourceList="$CACHE/apt/sources.list" -o Dir::Etc::SourceParts=/dev/null
  -o Dir::State::Lists="$CACHE/apt/lists" -o Dir::Cache="$CACHE/apt" -o APT::Sandbox::User=root)
apt-get "${apt[@]}" update

# Unpacks a package of a suite below the cache.
unpack() {
  local place; place=$(mktemp -d)
  (cd "$place" && apt-get "${apt[@]}" download "$1/$2" && dpkg -x ./*.deb "$CACHE/$1")
  rm -rf "$place"
}
[ -x "$BIN/containerd" ] || {
  unpack containerd trixie; unpack containernetworking-plugins trixie
  ln -sf "$CACHE"/containerd/usr/bin/* "$BIN"/
  ln -sfn "$CACHE/containernetworking-plugins/usr/lib/cni" "$CACHE/cni"
}
[ -x "$BIN/etcd" ] || { unpack etcd-server bookworm; ln -sf "$CACHE/etcd-server/usr/bin/etcd" "$BIN/etcd"; }
[ -x "$BIN/busybox" ] || { unpack busybox-static trixie; ln -sf "$CACHE/busybox-static/usr/bin/busybox" "$BIN/busybox"; }
[ -x "$BIN/kubectl" ] && exit 0

command -v go >/dev/null || { echo "cannot build Kubernetes: Go is missing; apt-get install golang-go" >&2; exit 1; }
work=$CACHE/build; mkdir -p "$work/tmp"; cd "$work"
trap 'chmod -R u+w "$work" 2>/dev/null; rm -rf "$work"' EXIT
apt-get "${apt[@]}" source --download-only kubernetes
export GO111MODULE=off GOPATH=$work/path GOCACHE=$work/cache TMPDIR=$work/tmp CGO_ENABLED=0
source=$GOPATH/src/k8s.io/kubernetes; mkdir -p "$source"
tar -xzf kubernetes_*.orig.tar.gz -C "$source" --strip-components=1
cd "$source"
# Debian's archive lacks the generated description of the API.
go build -o "$work/openapi-gen" ./vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -rl --include='*.go' '+k8s:openapi-gen=true' pkg staging/src/k8s.io | xargs -n1 dirname | sort -u |
  grep -vE '_examples|code-generator|sample-|testdata' |
  sed -e 's#^staging/src/#k8s.io/kubernetes/vendor/#' -e 's#^pkg/#k8s.io/kubernetes/pkg/#' | paste -sd,)
"$work/openapi-gen" -v 0 --go-header-file hack/boilerplate/boilerplate.generatego.txt -O zz_generated.openapi \
  -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi -o "$GOPATH/src" -r "$work/violations"
version=k8s.io/kubernetes/vendor/k8s.io/component-base/version
flags="-s -w -X $version.gitVersion=v1.20.2 -X $version.gitMajor=1 -X $version.gitMinor=20"
for one in kube-apiserver kube-controller-manager kube-scheduler kubelet kubectl; do
  nice go build -p 2 -ldflags "$flags" -o "$BIN/$one" "./cmd/$one"
done
