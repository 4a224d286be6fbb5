#!/bin/bash
# Whether the job's endpoint answers: for a container's health check. There is no HTTP client in the
# image, and bash needs none.
set -euo pipefail

address="${PACELINE_LISTEN:-127.0.0.1:7223}"
if [[ $address == unix:* ]]; then
  # bash connects to no Unix socket; the endpoint takes its file away when it ends.
  exec test -S "${address#unix:}"
fi
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
read -r _ status _ <&3
[ "$status" = 200 ]
