#!/bin/bash
# tests.sh PROGRAM [FILTER…]: runs in the virtual machine, as root: the program once for each filter, also
# after a failure; without a filter, all its tests. Ends with 1 when a test failed, or none ran.
program="$1"
shift
[ $# -gt 0 ] || set -- ""

# On a slow machine the message bus gives up what it starts on request. So they are started before.
export SYSTEMD_BUS_TIMEOUT=600
# An emulated machine sometimes loses the word that the bus is ready; then it is started again.
for _ in 1 2 3 4 5; do
  systemctl reset-failed
  timeout 60 systemctl start dbus.socket dbus.service && break
  timeout 60 systemctl stop dbus.service
done
systemctl restart systemd-logind.service

status=0
for filter in "$@"; do
  "$program" --test-threads=1 --color=never ${filter:+"$filter"} 2>&1 | tee /run/said
  [ "${PIPESTATUS[0]}" = 0 ] || status=1
  # A filter without tests, a missing engine or a missing user must not count as a success.
  if ! grep -qE '^test result: .* [1-9][0-9]* (passed|failed);' /run/said; then
    echo "FAILED: no test ${filter:+that begins with $filter }has run"
    status=1
  fi
done
echo "The tests ended after $(cut -d ' ' -f 1 /proc/uptime) s."
exit "$status"
