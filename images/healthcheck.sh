#!/bin/bash
# Checks that the job's endpoint answers: for a container's health check. The image has no HTTP client,
# and bash needs none.
set -euo pipefail

address="${PACELINE_LISTEN:-127.0.0.1:7223}"
if [[ $address == unix:* ]]; then
  # bash cannot connect to a Unix socket; the endpoint removes its file when it ends.
  exec test -S "${address#unix:}"
fi
exec 3<>"/dev/tcp/${address%:*}/${address##*:}"
printf 'GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n' >&3
read -r _ status _ <&3
[ "$status" = 200 ]
