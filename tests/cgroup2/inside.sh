#!/bin/bash
# A service of the virtual machine, which has systemd, control groups of version 2, and an engine that
# leaves them to systemd. It runs the tests, and powers off. The tests are an archive on the second
# disk, with a program `/run-tests` in it. Its status goes to the second serial port.
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
exec >/dev/ttyS0 2>&1

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

[ -f /sys/fs/cgroup/limited.slice/cpu.max ] || fail "cgroup v2 has no CPU controller"
tar -x --no-overwrite-dir -f /dev/vdb -C / || fail "cannot read the second disk"

# Tests without containers mask the engine, which takes long to start.
engine="no engine"
if [ "$(systemctl is-enabled docker)" = enabled ]; then
  for _ in $(seq 1 300); do
    info="$(curl -s --unix-socket /run/docker.sock http://engine/info)" && break
    sleep 1
  done
  [ -n "$info" ] || { journalctl -n 20 -u docker; fail "the engine does not start"; }
  field() { sed "s/.*\"$1\":\"\\([^\"]*\\)\".*/\\1/" <<<"$info"; }
  driver="$(field CgroupDriver)"
  [ "$driver" = systemd ] || fail "the engine has the cgroup driver $driver"
  engine="Docker $(field ServerVersion) with the driver $driver"
fi
echo "Linux $(uname -r), $(systemctl --version | head -n 1), cgroup v2, $engine: up after" \
  "$(cut -d ' ' -f 1 /proc/uptime) s"

/run-tests
finish $?
