#!/usr/bin/env bash
# Checks the crates that run beside a job for systems other than this machine's: `cargo check`, without TLS,
# which would need a C compiler of each. What cannot be checked here is reported as skipped.
#
#   targets.sh [TARGET]…
#
# Where this machine can run programs of 64-bit ARM, it also builds the sidecar for it, and lets it read a log.
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*"; }
die() { printf '%s\n' "targets: $*" >&2; exit 1; }

arm=aarch64-unknown-linux-gnu
(($#)) || set -- x86_64-pc-windows-gnu x86_64-apple-darwin aarch64-apple-darwin "$arm"
# Beside other builds, whose outputs stay.
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/targets"
sysroot=$(rustc --print sysroot)

check() {
  "${CARGO:-cargo}" check --quiet --locked --target "$@" || die "$1: does not compile"
}

# The sidecar runs under $1, an emulator, and reads a log that Hugging Face's Trainer has written: it has as many
# losses as the log has lines of them.
run_on_arm() {
  local program work log=sidecar/tests/frameworks/hf_stdout/stdout.log losses reports
  losses=$(grep -c "^{'loss'" "$log") || die "the log $log has no loss"
  program=$CARGO_TARGET_DIR/$arm/debug/paceline-sidecar
  export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc
  "${CARGO:-cargo}" rustc --quiet --locked --target "$arm" --package paceline-sidecar --bin paceline-sidecar \
    --no-default-features -- -C target-feature=+crt-static
  work=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$work'" EXIT
  "$1" "$program" exec --listen "unix:$work/job.sock" --status-file "$work/status.json" -- cat "$log" \
    >"$work/out" 2>"$work/error" || die "$arm: ends with code $?: $(cat "$work/error")"
  cmp -s "$work/out" "$log" || die "$arm: the job's output is not passed on"
  reports=$(sed -E 's/.*"eval":\{[^}]*"count":([0-9]+).*/\1/' "$work/status.json")
  [ "$reports" = "$losses" ] || die "$arm: $reports losses are read of $losses: $(cat "$work/status.json")"
  say "$arm: passed, the sidecar runs under ${1##*/} and reads all $losses losses of a real log"
}

for target; do
  if ! [ -d "$sysroot/lib/rustlib/$target/lib" ]; then
    say "$target: skipped, its standard library is missing (rustup target add $target)"
    continue
  fi
  check "$target" --package paceline-reporter --features metrics,sigterm,tensorboard
  if [[ $target == *windows* ]]; then
    say "$target: passed, the reporter compiles"
    say "$target: skipped for the sidecar, which needs the terminals and signals of Unix"
    continue
  fi
  check "$target" --package paceline-sidecar --no-default-features --features manual,watch
  say "$target: passed, the reporter and the sidecar compile"
  [ "$target" = "$arm" ] && [ "$(uname -m)" != aarch64 ] || continue
  qemu=$(command -v qemu-aarch64-static || command -v qemu-aarch64 || true)
  if [ -z "$qemu" ] || ! command -v aarch64-linux-gnu-gcc >/dev/null; then
    say "$target: skipped to run, qemu-aarch64-static or aarch64-linux-gnu-gcc is missing (Debian: qemu-user-static gcc-aarch64-linux-gnu)"
  else
    run_on_arm "$qemu"
  fi
done
