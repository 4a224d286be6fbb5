#!/usr/bin/env bash
# Records the loss curves beside this script: every batch's loss of the workloads in `images/`.
#
#   record.sh NAME WORKLOAD [OPTION...]   writes NAME.txt, of MNIST
#   record.sh                             records all that are listed below
#
# BIN is the folder of the workloads' programs (by default that of the build in `images/`),
# LIBTORCH that of libtorch, MNIST and FASHION_MNIST those of the images.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
images="$here/../../../images"
bin="${BIN:-$images/target/release}"

record() {
  local name="$1" workload="$2"
  shift 2
  local log
  log="$(mktemp)"
  LIBTORCH="${LIBTORCH:-$("$images/libtorch.sh" | tail -n 1)}"
  PACELINE_DISABLED=1 LD_LIBRARY_PATH="$LIBTORCH/lib" \
    "$bin/$workload" --threads 1 --log-interval 1 --data "$data" "$@" >"$log"
  {
    echo "# $workload $*, on $(sed -n '1s/ from .*//p' "$log")"
    # Four significant digits; anything but a finite number stays unchanged.
    awk -F '\t' '/^Train Epoch/ { sub("Loss: ", "", $2); printf "%.4g\n", $2 }' "$log"
  } >"$here/$name.txt"
  rm -f "$log"
}

# Runs a workload on one of the two data sets, unless its curve is there.
on() {
  local data="$1" name="$2"
  shift
  [ -e "$here/$name.txt" ] || record "$@"
}
on_mnist() { on "${MNIST:?}" "$@"; }
on_fashion() { on "${FASHION_MNIST:?}" "$@"; }

if [ $# -gt 0 ]; then
  on "${MNIST:?}" "$@"
  exit
fi

# The method was tuned on these.
on_mnist tuned-vae-mnist-1 vae --steps 1700 --seed 1
on_mnist tuned-vae-mnist-2 vae --steps 2600 --seed 2 --learning-rate 3e-4
on_mnist tuned-vae-mnist-3 vae --steps 1700 --seed 3 --batch-size 32
on_mnist tuned-vae-mnist-4 vae --steps 1200 --seed 4 --learning-rate 3e-3
on_mnist tuned-mnist-mnist-1 mnist --steps 300 --seed 1
on_mnist tuned-mnist-mnist-2 mnist --steps 600 --seed 2 --learning-rate 1e-4
on_mnist tuned-mnist-mnist-3 mnist --steps 400 --seed 3 --batch-size 32
on_fashion tuned-vae-fashion-1 vae --steps 2000 --seed 1
on_fashion tuned-vae-fashion-2 vae --steps 2500 --seed 2 --learning-rate 4e-4
on_fashion tuned-vae-fashion-3 vae --steps 1500 --seed 3 --batch-size 256
on_fashion tuned-mnist-fashion-1 mnist --steps 500 --seed 1
on_fashion tuned-mnist-fashion-2 mnist --steps 700 --seed 2 --learning-rate 3e-4
on_fashion tuned-mnist-fashion-3 mnist --steps 600 --seed 3 --batch-size 24

# These were set aside, and looked at while it was tuned.
on_mnist checked-vae-mnist-1 vae --steps 1700 --seed 11
on_mnist checked-vae-mnist-2 vae --steps 2200 --seed 12 --learning-rate 5e-4
on_mnist checked-vae-mnist-3 vae --steps 1600 --seed 13 --batch-size 64
on_mnist checked-vae-mnist-4 vae --steps 1300 --seed 14 --learning-rate 2e-3
on_mnist checked-mnist-mnist-1 mnist --steps 300 --seed 11
on_mnist checked-mnist-mnist-2 mnist --steps 500 --seed 12 --learning-rate 2e-4
on_mnist checked-mnist-mnist-3 mnist --steps 400 --seed 13 --batch-size 100
on_fashion checked-vae-fashion-1 vae --steps 2000 --seed 11
on_fashion checked-vae-fashion-2 vae --steps 2000 --seed 12 --learning-rate 2e-3
on_fashion checked-vae-fashion-3 vae --steps 2000 --seed 13 --batch-size 64
on_fashion checked-mnist-fashion-1 mnist --steps 500 --seed 11
on_fashion checked-mnist-fashion-2 mnist --steps 700 --seed 12 --learning-rate 2e-4
on_fashion checked-mnist-fashion-3 mnist --steps 500 --seed 13 --batch-size 128

# These were recorded when the method was done, and judge it.
on_mnist judged-vae-mnist-1 vae --steps 1700 --seed 21
on_mnist judged-vae-mnist-2 vae --steps 2000 --seed 22 --learning-rate 7e-4 --batch-size 100
on_mnist judged-vae-mnist-3 vae --steps 1500 --seed 23 --learning-rate 1.5e-3
on_mnist judged-mnist-mnist-1 mnist --steps 300 --seed 21
on_mnist judged-mnist-mnist-2 mnist --steps 400 --seed 22 --learning-rate 3e-4
on_fashion judged-vae-fashion-1 vae --steps 2000 --seed 21
on_fashion judged-vae-fashion-2 vae --steps 2200 --seed 22 --learning-rate 7e-4 --batch-size 100
on_fashion judged-vae-fashion-3 vae --steps 2000 --seed 23 --learning-rate 1.5e-3
on_fashion judged-mnist-fashion-1 mnist --steps 500 --seed 21
on_fashion judged-mnist-fashion-2 mnist --steps 600 --seed 22 --learning-rate 5e-4
on_fashion judged-mnist-fashion-3 mnist --steps 500 --seed 23 --batch-size 96
