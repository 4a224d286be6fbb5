# shellcheck shell=bash
# Sourced by a recipe of the Makefile with its target's name. When the recipe ends, prints its duration,
# and the CPU time and the steal of the whole machine meanwhile. Containers are children of the engine,
# so the time of this process and its children would not include them. With PACELINE_SECONDS=FILE the
# line is added to that file, too.

stopwatch_name=$1
# Hundredths of a second so far: busy, and taken by the machine's host.
stopwatch_read() { awk '/^cpu / {print $2 + $3 + $4 + $7 + $8, $9; exit}' /proc/stat; }
stopwatch_began=${EPOCHREALTIME/,/.}
read -r stopwatch_busy stopwatch_stolen < <(stopwatch_read)

stopwatch_stop() {
  local status=$? busy stolen
  read -r busy stolen < <(stopwatch_read)
  awk -v name="$stopwatch_name" -v from="$stopwatch_began" -v to="${EPOCHREALTIME/,/.}" -v status="$status" \
    -v busy="$((busy - stopwatch_busy))" -v stolen="$((stolen - stopwatch_stolen))" 'BEGIN {
      printf "%-18s %7.1f s   CPU %7.1f s   steal %6.1f s%s\n", name, to - from, busy / 100,
        stolen / 100, status ? "   failed" : ""
    }' | tee -a "${PACELINE_SECONDS:-/dev/null}" >&2
}
trap stopwatch_stop EXIT
