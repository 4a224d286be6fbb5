#!/bin/bash
# The first process of the virtual machine, in place of systemd: control groups of version 2, the
# engine, what is to be run, power off. What is to be run is an archive on the second disk, with a
# program `/run-tests` in it; its status goes to the second serial port.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

seconds() { cut -d ' ' -f 1 /proc/uptime; }
finish() {
  echo "$1" >/dev/ttyS1
  # Both ports send what they still have.
  sleep 1
  echo o >/proc/sysrq-trigger
  sleep 60
}
fail() {
  echo "the virtual machine: $1"
  finish 1
}

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mountpoint -q /dev || mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ip link set lo up

# A group with processes of its own cannot share what it has among groups below: this one moves out
# of the root, as systemd would see to.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
  echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control || fail "cgroup v2 has no CPU controller"
# The kernel patches its own code when a first group gets a quota and when the last one loses it, which
# tests do all the time. QEMU sometimes has one processor run what the other has half patched, and the
# kernel panics: so one group has a quota for good.
mkdir /sys/fs/cgroup/limited
echo "100000 100000" >/sys/fs/cgroup/limited/cpu.max

tar -x --no-overwrite-dir -f /dev/vdb -C / || fail "the second disk cannot be read"

dockerd >/var/log/dockerd.log 2>&1 &
for _ in $(seq 1 300); do
  version="$(curl -s --unix-socket /run/docker.sock http://engine/version)" && break
  sleep 1
done
[ -n "$version" ] || { tail -n 20 /var/log/dockerd.log; fail "the engine does not start"; }
echo "Linux $(uname -r), cgroup v2, Docker $(sed 's/.*"Version":"\([^"]*\)".*/\1/' <<<"$version"):" \
  "up after $(seconds) s"

/run-tests
finish $?
