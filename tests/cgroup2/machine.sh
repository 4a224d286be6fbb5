#!/usr/bin/env bash
# machine.sh PROGRAM FILTER…: runs a program of tests in the virtual machine, once for each filter,
# with the programs that cargo has put beside it; ends with the tests' status. Cargo calls it as a
# runner.
set -euo pipefail

# Emulated, since not every machine can use its processor for that: ten times slower, or more.
limit="${PACELINE_MACHINE_LIMIT:-2400}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
program="$(realpath "$1")"
shift
image="$("$here/image.sh")"

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# The tests look for programs where cargo has put them, so they have the same places in the machine.
target="$(dirname "$(dirname "$program")")"
for file in "$program" "$target"/{paceline,paceline-sidecar,toy-job}; do
  install -D "$file" "$scratch/root$file"
  strip --strip-debug "$scratch/root$file" 2>/dev/null || true
done
cp "$here/tests.sh" "$scratch/root/"
{
  echo '#!/bin/bash'
  printf 'exec /tests.sh'
  printf ' %q' "$program" "$@"
} >"$scratch/root/run-tests"
chmod 755 "$scratch/root/run-tests"
tar -c -f "$scratch/programs.tar" -C "$scratch/root" --owner=0 --group=0 .

echo "Starting the virtual machine: a quarter of a minute." >&2
# -cx16: QEMU before 8 gets the flags of cmpxchg16b wrong, and the kernel fails. No five-level paging,
# which is useless here. Changes to the disk are dropped at the end.
timeout --foreground "$limit" qemu-system-x86_64 -accel tcg,thread=multi,tb-size=512 \
  -cpu max,-cx16,-la57 -smp 2 -m 2048 -no-reboot -nic none -display none -monitor none \
  -serial stdio -serial "file:$scratch/status" \
  -kernel "$image/kernel" -initrd "$image/initrd" \
  -append 'root=/dev/vda rw init=/sbin/init console=ttyS0 quiet panic=-1' \
  -drive "file=$image/disk,if=virtio,format=raw,snapshot=on" \
  -drive "file=$scratch/programs.tar,if=virtio,format=raw,readonly=on" \
  </dev/null | sed -u 's|\r||' || echo "The virtual machine has failed, or took longer than $limit s." >&2

status="$(tr -cd 0-9 <"$scratch/status")"
[ -n "$status" ] || { echo "The virtual machine ended without a status of the tests." >&2; exit 1; }
exit "$status"
