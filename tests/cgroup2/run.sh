#!/usr/bin/env bash
# run.sh [PART]: runs the tests that cgroup v2 and systemd matter to where they are: in a virtual machine.
# PART is `docker` or `processes`, which needs no container engine; both by default.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

# Prefixes of test names: observing, limiting, restoring, kills, and systemd. Each test takes twenty
# seconds in an emulated machine, a kill ten. Tests that must see short states are left out: such a
# machine is too slow. PACELINE_KILLS sets how many kills there are, and PACELINE_SEED repeats them.
tests=(
  flowcon::cpu_moves
  flowcon::a_job_that_ends
  flowcon::a_dry_run
  limits::
  dependability::after_a_kill
  dependability::next_run
  endpoints::host_network_job
  systemd::
  processes::
  faults::random_kills
)
part="${1:-all}"
case "$part" in
  all | docker | processes) ;;
  *) echo "invalid PART \"$part\": expected all, docker or processes" >&2; exit 2 ;;
esac
export PACELINE_KILLS="${PACELINE_KILLS:-10}"

# shellcheck source=ready.sh
. tests/cgroup2/ready.sh "The tests under cgroup v2 are skipped"

cargo="${CARGO:-cargo}"
"$cargo" build --locked --bin paceline --bin paceline-sidecar --bin toy-job
export CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER="$PWD/tests/cgroup2/machine.sh"
status=0
if [ "$part" != docker ]; then
  PACELINE_MACHINE_ENGINE=no "$cargo" test --locked --package paceline-system-tests --test processes || status=1
fi
if [ "$part" != processes ]; then
  "$cargo" test --locked --package paceline-system-tests --test docker -- "${tests[@]}" || status=1
fi
exit "$status"
