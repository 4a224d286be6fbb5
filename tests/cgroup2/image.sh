#!/usr/bin/env bash
# Ensures that there is a small Debian with a Docker engine for a virtual machine, and prints the
# folder that holds its kernel, its initrd and its disk. It is built once, and rebuilt when its recipe
# changes. Exit code 77: it cannot be built here; the last line gives the reason.
set -euo pipefail

say() { printf '%s\n' "$*" >&2; }
skip() { say "$*"; exit 77; }

here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
[ "$(uname -m)" = x86_64 ] || skip "the virtual machine is made for x86-64 only"

# The commands that start and build the machine, with their packages.
tools=(qemu-system-x86_64:qemu-system-x86)
recipe="$(cat "$here"/{image,inside}.sh | sha256sum | cut -c 1-16)"
image="${XDG_CACHE_HOME:-$HOME/.cache}/paceline/cgroup2/$recipe"
[ -d "$image" ] || tools+=(mmdebstrap:mmdebstrap mke2fs:e2fsprogs)

missing=()
for tool in "${tools[@]}"; do
  PATH="$PATH:/usr/sbin:/sbin" command -v "${tool%:*}" >/dev/null || missing+=("${tool#*:}")
done
if [ ${#missing[@]} -gt 0 ]; then
  if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    skip "missing packages, which only root on Debian or Ubuntu can install: ${missing[*]}"
  fi
  say "Installing ${missing[*]}."
  { apt-get update -q && apt-get install -y -q --no-install-recommends "${missing[@]}"; } >&2 ||
    skip "apt-get cannot install ${missing[*]}"
fi

if [ -d "$image" ]; then
  touch "$image"
  printf '%s\n' "$image"
  exit 0
fi
# Its files must belong to root in the machine, as they do here.
[ "$(id -u)" = 0 ] || skip "only root can make the virtual machine's disk"

# The mirror of this machine's own packages, if it is a Debian: it can be reached.
mirror="$(
  # shellcheck disable=SC1091,SC2016
  . /etc/os-release 2>/dev/null || true
  [ "${ID:-}" != debian ] || apt-get indextargets --format '$(REPO_URI) $(RELEASE)' |
    awk -v release="${VERSION_CODENAME:-}" '$2 == release && !uri { uri = $1 } END { print uri }'
)"

mkdir -p "${image%/*}"
# Half a gigabyte each: remove those of other recipes that are a month old, and unfinished ones.
find "${image%/*}" -mindepth 1 -maxdepth 1 -mtime +30 -exec rm -rf {} +
stage="$(mktemp -d -p "${image%/*}")"
trap 'rm -rf "$stage"' EXIT
trap 'exit 130' INT TERM
# In some modes mmdebstrap works as another user.
chmod 755 "$stage"

say "Making a virtual machine of Debian trixie with systemd and a Docker engine: a minute or two."
# libpam-systemd gives each login a session, and dbus-user-session a bus to the user's manager.
packages=linux-image-cloud-amd64,systemd-sysv,dbus,docker.io,docker-cli,iptables,iproute2,curl
packages+=,libpam-systemd,dbus-user-session
mmdebstrap --quiet --variant=minbase --include="$packages" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --dpkgopt='path-exclude=/usr/share/locale/*' \
  --customize-hook='for user in first second; do chroot "$1" useradd --create-home --shell /bin/bash $user; done' \
  trixie "$stage/root" ${mirror:+"$mirror"} >&2 ||
  skip "cannot fetch Debian's packages from here"
settings() { install -D -m 644 /dev/stdin "$stage/root/$1"; }
install -m 755 "$here/inside.sh" "$stage/root/usr/local/sbin/inside"
settings etc/systemd/system/paceline-tests.service <<'END'
[Unit]
Wants=docker.service limited.slice
After=docker.service limited.slice
[Service]
Type=oneshot
ExecStart=/usr/local/sbin/inside
TimeoutStartSec=infinity
END
# The kernel patches its own code when a first group gets a quota and when the last one loses it, which
# happens often in tests. QEMU sometimes runs half-patched code on another processor, and the kernel
# panics. So one group always has a quota.
settings etc/systemd/system/limited.slice <<'END'
[Slice]
CPUQuota=100%
END
settings etc/docker/daemon.json <<<'{"exec-opts": ["native.cgroupdriver=systemd"]}'
# An emulated machine is slow.
settings etc/systemd/system.conf.d/slow.conf <<'END'
[Manager]
DefaultTimeoutStartSec=600
END
# A machine that has its id asks no questions at its first start.
echo 5061636c696e6520636772757032207632 | cut -c 1-32 >"$stage/root/etc/machine-id"
units="$stage/root/etc/systemd/system"
mkdir -p "$units/multi-user.target.wants"
ln -s ../paceline-tests.service "$units/multi-user.target.wants/"
for unit in serial-getty@ttyS0.service getty@tty1.service apt-daily.timer apt-daily-upgrade.timer \
  dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer; do
  ln -sf /dev/null "$units/$unit"
done
mkdir "$stage/image"
cp "$stage"/root/boot/vmlinuz-* "$stage/image/kernel"
cp "$stage"/root/boot/initrd.img-* "$stage/image/initrd"
PATH="$PATH:/usr/sbin:/sbin" mke2fs -q -t ext4 -d "$stage/root" -F "$stage/image/disk" 4G >/dev/null
# Another run may have built it meanwhile; both have the same content.
mv -T "$stage/image" "$image" 2>/dev/null || [ -d "$image" ]
printf '%s\n' "$image"
