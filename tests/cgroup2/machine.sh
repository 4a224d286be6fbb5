#!/usr/bin/env bash
# machine.sh PROGRAM [FILTER…]: runs a program of tests in the virtual machine, once for each filter,
# with the programs that cargo has put beside it; ends with the tests' status. Cargo calls it as a
# runner. PACELINE_MACHINE_ENGINE=no starts no container engine there.
#
# machine.sh --script SCRIPT [FILE…]: runs a script there instead, in a folder with these files.
set -euo pipefail

limit="${PACELINE_MACHINE_LIMIT:-5400}"
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
script=""
if [ "$1" = --script ]; then
  script="$(realpath "$2")"
  shift 2
else
  program="$(realpath "$1")"
  shift
fi
image="$("$here/image.sh")"

scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM

# A machine without network that starts the image's kernel. It takes the place of its shell, so that
# `timeout` ends it.
machine() {
  exec qemu-system-x86_64 "$@" -m 2048 -no-reboot -nic none -display none -monitor none \
    -kernel "$image/kernel" -initrd "$image/initrd"
}

# /dev/kvm may be there and not be able to start this kernel. So a first start only panics, which takes
# a second or two.
kvm=(-accel kvm -cpu host -smp 2)
kvm_works() {
  [ -r /dev/kvm ] && [ -w /dev/kvm ] || return 1
  export -f machine
  export image
  timeout 20 bash -c 'machine "$@"' machine "${kvm[@]}" -serial stdio \
    -append 'console=ttyS0 rdinit=/none panic=-1 no_timer_check' </dev/null 2>&1 | grep 'Kernel panic' >/dev/null
}

# -cx16: QEMU before 8 gets the flags of cmpxchg16b wrong, and the kernel fails. No five-level paging,
# which is useless here.
emulated=(-accel tcg,thread=multi,tb-size=512 -cpu max,-cx16,-la57 -smp 2)
if kvm_works; then
  how=("${kvm[@]}") patience=1
  echo "Starting the virtual machine with KVM: seconds." >&2
else
  # Ten times slower, or more.
  how=("${emulated[@]}") patience=4
  echo "Starting the virtual machine by emulation, as KVM does not work here: a minute." >&2
fi

mkdir "$scratch/root"
if [ -n "$script" ]; then
  mkdir "$scratch/root/files"
  cp "$@" "$scratch/root/files/"
  cp "$script" "$scratch/root/script.sh"
  set -- bash /script.sh
else
  # The tests look for programs where cargo has put them, so they have the same places in the machine.
  target="$(dirname "$(dirname "$program")")"
  for file in "$program" "$target"/{paceline,paceline-sidecar,toy-job}; do
    install -D "$file" "$scratch/root$file"
    strip --strip-debug "$scratch/root$file" 2>/dev/null || true
  done
  cp "$here/tests.sh" "$scratch/root/"
  set -- /tests.sh "$program" "$@"
fi
{
  echo '#!/bin/bash'
  for variable in PACELINE_KILLS PACELINE_SEED; do
    [ -z "${!variable:-}" ] || printf 'export %s=%q\n' "$variable" "${!variable}"
  done
  printf 'export PACELINE_TEST_PATIENCE=%d\n' "$patience"
  # The image has these users.
  printf 'export PACELINE_TEST_USERS=%q\n' 'first second'
  printf 'exec'
  printf ' %q' "$@"
} >"$scratch/root/run-tests"
chmod 755 "$scratch/root/run-tests"
tar -c -f "$scratch/programs.tar" -C "$scratch/root" --owner=0 --group=0 .

engine=()
[ "${PACELINE_MACHINE_ENGINE:-}" != no ] || engine=(systemd.mask=docker.service systemd.mask=docker.socket)

# Changes to the disk are dropped at the end. A busy machine is too slow for the kernel's check of its
# timer, which ends in a panic.
export -f machine
export image
run() {
  timeout --foreground "$limit" bash -c 'machine "$@"' machine "${how[@]}" \
    -serial stdio -serial "file:$scratch/status" \
    -append 'root=/dev/vda rw console=ttyS0 quiet systemd.show_status=false panic=-1 no_timer_check'" ${engine[*]}" \
    -drive "file=$image/disk,if=virtio,format=raw,snapshot=on" \
    -drive "file=$scratch/programs.tar,if=virtio,format=raw,readonly=on" \
    </dev/null | sed -u 's|\r||' | tee "$scratch/printed"
}
# QEMU sometimes runs half-patched code on another processor while the kernel starts, and the kernel
# panics. What has not begun may begin again.
for _ in 1 2 3; do
  run || echo "The virtual machine has failed, or took longer than $limit s." >&2
  ! grep -q ': up after [0-9]' "$scratch/printed" || break
  echo "The virtual machine has not started." >&2
done

status="$(tr -cd 0-9 <"$scratch/status")"
[ -n "$status" ] || { echo "The virtual machine ended without a status of the tests." >&2; exit 1; }
exit "$status"
