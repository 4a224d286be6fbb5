#!/bin/bash
# Ends the bed, and removes everything of it but the cache.
. "$(dirname "$0")/settings.sh"
[ -d "$RUN" ] || exit 0
nodes=$(cd "$RUN" && ls -d n[0-9] 2>/dev/null)
for name in $nodes; do end "$name-kubelet"; end "$name-containerd"; done
for name in manager scheduler api etcd; do end $name; done
for name in $nodes; do
  # The processes that are left are in this node's groups or in its network.
  for _ in 1 2 3 4 5 6 7 8; do
    left=$(find /sys/fs/cgroup/*/$PREFIX-"$name" -name cgroup.procs -exec cat {} + 2>/dev/null
      ip netns pids $PREFIX-"$name" 2>/dev/null)
    [ -n "$left" ] || break
    kill -9 $left 2>/dev/null; sleep 0.3
  done
  grep -o " $RUN/$name/[^ ]*" /proc/mounts | sort -r | xargs -r umount -l
  ip netns del $PREFIX-"$name"
  find /sys/fs/cgroup/*/$PREFIX-"$name" -depth -type d -exec rmdir {} + 2>/dev/null
done
ip netns del $PREFIX-switch 2>/dev/null
ip link del $PREFIX-host 2>/dev/null
made=$(tac "$RUN/made" 2>/dev/null)
rm -rf "$RUN"
[ -z "$made" ] || rmdir $made 2>/dev/null
left=$(ls -d /sys/fs/cgroup/*/$PREFIX-* /run/netns/$PREFIX-* 2>/dev/null)
[ -z "$left" ] || { echo "left behind: $left" >&2; exit 1; }
