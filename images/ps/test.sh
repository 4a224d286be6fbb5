#!/usr/bin/env bash
# A parameter server and three workers, each in its own container, learn to classify images. Meanwhile
# one worker is killed and another one joins, which changes nothing but speed. The bytes that the
# server counts are compared with those of its network interface. Needs the image of ../build.sh.
set -euo pipefail
cd "$(dirname "$0")"

say() { printf '%s\n' "$*" >&2; }
die() { say "parameter server: $*"; exit 1; }

data="$(../data.sh | tail -n 1)"
name="paceline-ps-test-$$"
clean() {
  docker ps --all --quiet --filter "name=^$name-" | xargs --no-run-if-empty docker rm --force
  docker network rm "$name"
}
trap 'clean >/dev/null 2>&1 || true' EXIT
trap 'exit 130' INT TERM

run() {
  local who="$1"
  shift
  docker run --detach --name "$name-$who" --network "$name" "$@" >/dev/null
}
worker() {
  run "worker$1" --volume "$data:/data:ro" --env PACELINE_DATA=/data paceline/workloads \
    mnist --role worker --servers "$name-server:7300" --seed "$1" --threads 1
}
log() { docker logs "$name-server" 2>&1; }
gradients() { log | awk '/^Step:/ { step = $2 } END { print step + 0 }'; }
# Waits until this many gradients have arrived.
until_gradients() {
  for _ in $(seq 1 1200); do
    [ "$(gradients)" -lt "$1" ] || return 0
    sleep 0.1
  done
  die "only $(gradients) gradients have arrived: $(log | tail -n 3)"
}
workers() { log | sed -n 's/.* \([0-9]*\) workers$/\1/p' | tail -n 1; }

docker network create "$name" >/dev/null
run server paceline/workloads mnist --role ps --log-interval 2
for one in 1 2 3; do
  worker "$one"
done
until_gradients 60
[ "$(workers)" = 3 ] || die "$(workers) workers, not 3"
docker kill "$name-worker3" >/dev/null
at="$(gradients)"
until_gradients "$((at + 30))"
[ "$(workers)" = 2 ] || die "$(workers) workers, not 2"
worker 4
at="$(gradients)"
until_gradients "$((at + 30))"
[ "$(workers)" = 3 ] || die "$(workers) workers, not 3"
until_gradients 1000
# The objective of `mnist`, which depends on the data set.
case "$(docker logs "$name-worker1" 2>&1)" in
  *Fashion-MNIST*) target=0.4 ;;
  *) target=0.25 ;;
esac
loss="$(log | sed -n 's/^Step: .*Loss: \([0-9.]*\).*/\1/p' | tail -n 50 | awk '{ sum += $1 } END { print sum / NR }')"
awk -v loss="$loss" -v target="$target" 'BEGIN { exit !(loss < target) }' ||
  die "after $(gradients) gradients the loss is $loss, not below $target"
say "3 workers, one of them replaced, reached a loss of $loss in $(gradients) gradients."

# Without workers, no more bytes are sent. One worker is cut off before its connection is closed, as if
# its machine had failed: the server notices it within 15 seconds.
docker network disconnect --force "$name" "$name-worker1"
docker kill "$name-worker1" "$name-worker2" "$name-worker4" >/dev/null
for _ in $(seq 1 300); do
  [ "$(workers)" = 0 ] && break
  sleep 0.1
done
[ "$(workers)" = 0 ] || die "the server still has $(workers) workers"
# The last line of each peer counts.
counted() {
  log | awk -v field="$1" '/^traffic:/ { split($field, pair, "="); of[$2] = pair[2] }
    END { for (peer in of) sum += of[peer]; print sum }'
}
interface() { docker exec "$name-server" cat "/sys/class/net/eth0/statistics/$1"; }
compare() {
  local ours="$1" theirs="$2" what="$3"
  awk -v ours="$ours" -v theirs="$theirs" 'BEGIN {
    ratio = theirs / ours; printf "%.4f\n", ratio; exit !(ratio > 0.98 && ratio < 1.02) }' ||
    die "$what: the server counts $ours bytes, its interface $theirs"
}
say "Bytes of the interface over those counted: sent $(compare "$(counted 3)" "$(interface tx_bytes)" sent)," \
  "received $(compare "$(counted 4)" "$(interface rx_bytes)" received)."

docker stop --time 10 "$name-server" >/dev/null
code="$(docker inspect --format '{{.State.ExitCode}}' "$name-server")"
[ "$code" = 0 ] || die "SIGTERM ended the server with exit code $code"
