#!/bin/bash
# The first process of the virtual machine, instead of systemd: it sets up control groups of version 2,
# starts the engine, runs the tests, and powers off. The tests are an archive on the second disk, with
# a program `/run-tests` in it. Its status goes to the second serial port.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

seconds() { cut -d ' ' -f 1 /proc/uptime; }
finish() {
  echo "$1" >/dev/ttyS1
  # Both ports send their remaining data.
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

# A group with its own processes cannot distribute its resources among groups below it. So this process
# moves out of the root group, as under systemd.
mkdir /sys/fs/cgroup/init
echo $$ >/sys/fs/cgroup/init/cgroup.procs
for controller in $(cat /sys/fs/cgroup/cgroup.controllers); do
  echo "+$controller" >/sys/fs/cgroup/cgroup.subtree_control
done
grep -qw cpu /sys/fs/cgroup/cgroup.subtree_control || fail "cgroup v2 has no CPU controller"
# The kernel patches its own code when a first group gets a quota and when the last one loses it, which
# happens often in tests. QEMU sometimes runs half-patched code on another processor, and the kernel
# panics. So one group always has a quota.
mkdir /sys/fs/cgroup/limited
echo "100000 100000" >/sys/fs/cgroup/limited/cpu.max

tar -x --no-overwrite-dir -f /dev/vdb -C / || fail "cannot read the second disk"

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
