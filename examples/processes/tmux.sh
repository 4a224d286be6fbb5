#!/bin/sh
# Starts a job in a window of tmux that outlives the terminal: tmux.sh NAME COMMAND…
# The job keeps the window's terminal, so its bars look as without Paceline. Where systemd manages the
# groups, it ends with the user's last session, unless `loginctl enable-linger` was run once.
set -eu
[ $# -ge 2 ] || { echo "usage: $0 NAME COMMAND..." >&2; exit 2; }
name="$1"
shift
exec tmux new-session -d -s "$name" paceline exec --job "$name" -- "$@"
