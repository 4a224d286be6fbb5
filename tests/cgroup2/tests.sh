#!/bin/bash
# tests.sh PROGRAM FILTER…: runs in the virtual machine, as root: the program once for each filter, also
# after a failure. Ends with 1 when a test failed, or a filter found no test to run.
program="$1"
shift

status=0
for filter in "$@"; do
  "$program" --test-threads=1 --color=never "$filter" 2>&1 | tee /run/said
  [ "${PIPESTATUS[0]}" = 0 ] || status=1
  # A filter without tests, or a missing engine, must not count as a success.
  if ! grep -q '^Docker tests: [1-9]' /run/said; then
    echo "FAILED: no test that begins with $filter has run"
    status=1
  fi
done
echo "The tests ended after $(cut -d ' ' -f 1 /proc/uptime) s."
exit "$status"
