#!/bin/bash
# Runs in the virtual machine, as root. The packages and the toy job are in /files.
set -euo pipefail
cd /files

fail() { echo "FAILED: $1"; exit 1; }
# Waits up to ten minutes until a command succeeds: an emulated machine is slow.
until_ok() {
  local what="$1"
  shift
  for _ in $(seq 600); do
    if "$@"; then return; fi
    sleep 1
  done
  systemctl status paceline --no-pager || true
  paceline status || true
  fail "$what"
}
# What dpkg, systemd, the engine and this test write for themselves is left out.
files() {
  find / -xdev \( -path /proc -o -path /sys -o -path /tmp -o -path /files -o -path /var/log -o -path /var/lib/docker \
    -o -path /var/lib/containerd -o -path /var/lib/systemd -o -path /var/lib/dpkg -o -path /var/lib/apt \
    -o -path /var/cache/apt -o -path /var/cache/debconf -o -path /var/tmp \) -prune -o -print | sort
}
limit() { cat "/sys/fs/cgroup/system.slice/docker-$(docker inspect --format '{{.Id}}' "$1").scope/cpu.max"; }
is_limited() { [ "$(limit "$1" | cut -d ' ' -f 1)" != max ]; }
is_free() { [ "$(limit "$1")" = "max 100000" ]; }

files >/tmp/before

apt-get install -y ./*.deb
systemctl is-active --quiet paceline || fail "the service is not active"
systemctl is-enabled --quiet paceline || fail "the service is not enabled"
paceline --version
paceline-sidecar --version
paceline doctor
paceline config check /etc/paceline/paceline.toml

image="$(mktemp -d)"
cp toy-job "$image"
ldd toy-job | grep -o '/[^ ]*' | xargs cp --parents --dereference --target-directory "$image"
tar -c -C "$image" . | docker import --change 'ENTRYPOINT ["/toy-job"]' - toy:test >/dev/null
start() { docker run -d --label paceline.enable=true --name "$@" >/dev/null; }
# Both use the whole machine. The first ends long before the second.
start short toy:test --burners 2 --steps 2000
start long toy:test --burners 2 --steps 1000000
until_ok "the job with more work left is limited" is_limited long
echo "cpu.max: short $(limit short), long $(limit long)"
docker rm --force short >/dev/null
until_ok "the job that is alone is free again" is_free long
echo "cpu.max: long $(limit long), once it is alone"
start third toy:test --burners 2 --steps 2000
until_ok "it is limited beside another one" is_limited long

apt-get purge -y paceline paceline-sidecar
for job in long third; do
  is_free "$job" || fail "$job has the limit $(limit "$job") after the purge"
  [ "$(docker inspect --format '{{.State.Running}} {{.HostConfig.NanoCpus}} {{.HostConfig.CpuQuota}}' "$job")" = "true 0 0" ] ||
    fail "$job is not as it was"
done
! systemctl cat paceline >/dev/null 2>&1 || fail "the unit is still there"
files >/tmp/after
if ! diff /tmp/before /tmp/after; then fail "the purge leaves files, or takes others"; fi
left="$(find /run /var/lib /etc -xdev -iname '*paceline*' ! -name '*paceline-tests*' ! -path '*/docker/*')"
[ -z "$left" ] || fail "the purge leaves $left"
echo "The packages were installed, the limits moved, and the purge left nothing."
