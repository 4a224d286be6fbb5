#!/usr/bin/env bash
# Runs the Docker tests that cgroup v2 matters to where the engine has it: in a virtual machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Prefixes of test names: observing, limiting and restoring. Each test takes twenty seconds there. Tests
# that must see short states are left out: the machine is too slow.
tests=(
  flowcon::cpu_moves
  flowcon::a_job_that_ends
  flowcon::a_dry_run
  limits::
  dependability::after_a_kill
  dependability::next_run
  endpoints::host_network_job
)

code=0
tests/cgroup2/image.sh >/dev/null || code=$?
if [ "$code" = 77 ]; then
  echo "The tests under cgroup v2 are skipped: see above."
  exit 0
fi
[ "$code" = 0 ] || exit "$code"

cargo="${CARGO:-cargo}"
"$cargo" build --locked --bin paceline --bin paceline-sidecar --bin toy-job
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/tests/cgroup2/machine.sh"
exec "$cargo" test --locked --package paceline-system-tests --test docker -- "${tests[@]}"
