#!/usr/bin/env python3
"""Measures the workloads in their containers: the time of a step beside the twin in Python, and the
throughput of two jobs that share the CPUs.

    measure.py speed [WORKLOAD…]      step times, Rust and Python in turns, one thread and two
    measure.py together [WORKLOAD…]   two jobs of two threads, side by side and one after the other
    measure.py targets [WORKLOAD…]    the time to the acceptable loss and to the objective

It needs the images of `make images images-python`, and an otherwise idle machine. A step's time is
the difference of a long and a short run over the difference of their steps, so that the start does
not count. Every figure is the median of several runs (5, or the variable RUNS). Times to targets are
of one run, from the start of the container. `PACELINE_DATA` chooses the images.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
RUNS = int(os.environ.get("RUNS", "5"))
# Two jobs side by side must reach this fraction of their throughput one after the other.
TOGETHER = 0.9
# The longest step of a Rust workload, relative to its twin's.
SLOWER = 1.03
# A job that has not reached its objective after this many seconds is stopped.
TIMEOUT = float(os.environ.get("PATIENCE", "1800"))


class Workload(NamedTuple):
    """A workload and its twin: commands within the images, and steps of a short and a long run."""

    rust: list[str]
    image: str
    python: list[str]
    short: int
    long: int
    # The length of a run to the targets. It matters where the learning rate depends on it.
    course: int = 10**6


WORKLOADS = {
    "vae": Workload(["vae"], "python-torch", ["python", "vae.py"], 50, 1450),
    "mnist": Workload(["mnist"], "python-torch", ["python", "mnist.py"], 10, 250),
    "gru": Workload(["gru", "adding"], "python-keras", ["python", "keras_gru.py"], 20, 220),
    "resnet50": Workload(["resnet50"], "python-torch", ["python", "resnet50.py"], 1, 4, 250),
}


# Twins of a workload that are measured for their targets alone.
FURTHER = {"mnist": [("python-keras", ["python", "keras_mnist.py"])]}


def command(image: str, inside: list[str], data: str, steps: int, threads: int) -> list[str]:
    """A run of this many steps in a container without a network."""
    folder = ["--volume", f"{data}:/data:ro", "--env", "PACELINE_DATA=/data"]
    run = ["docker", "run", "--rm", "--network", "none", *folder, f"paceline/{image}", *inside]
    return [*run, "--steps", str(steps), "--threads", str(threads)]


def seconds(*commands: list[str]) -> float:
    """The time that commands take when started together."""
    began = time.perf_counter()
    running = [
        subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for one in commands
    ]
    for one in running:
        _, errors = one.communicate()
        if one.returncode:
            sys.exit(f"{' '.join(one.args)}: {errors.decode(errors='replace')[-500:]}")
    return time.perf_counter() - began


def speed(name: str, data: str) -> bool:
    """Prints step times with one and two threads; returns whether Rust is fast enough."""
    workload, quick = WORKLOADS[name], True
    twins = [("workloads", workload.rust), (workload.image, workload.python)]
    for threads in (1, 2):
        times: list[list[float]] = [[], []]
        for _ in range(RUNS):
            for of, (image, inside) in zip(times, twins, strict=True):
                short, long = (
                    seconds(command(image, inside, data, steps, threads))
                    for steps in (workload.short, workload.long)
                )
                of.append((long - short) / (workload.long - workload.short))
        rust, python = (statistics.median(of) for of in times)
        ratio = statistics.median(ours / twin for ours, twin in zip(*times, strict=True))
        quick &= ratio <= SLOWER
        print(
            f"{name:10}{threads:8}{rust * 1e3:12.2f}{python * 1e3:12.2f}{ratio:9.3f}"
            f"   {'ok' if ratio <= SLOWER else f'above {SLOWER}'}",
            flush=True,
        )
    return quick


def together(name: str, data: str) -> bool:
    """Prints the relative throughput of two jobs side by side; returns whether it is enough."""
    workload = WORKLOADS[name]
    parts = []
    for _ in range(RUNS):
        one = command("workloads", workload.rust, data, workload.long, 2)
        apart = seconds(one) + seconds(one)
        parts.append(apart / seconds(one, one))
    part = statistics.median(parts)
    print(f"{name:10}{part:10.2f}   {'ok' if part >= TOGETHER else f'below {TOGETHER}'}", flush=True)
    return part >= TOGETHER


def targets(name: str, data: str) -> bool:
    """Prints when a workload and its twins reach the targets; returns whether all do."""
    workload = WORKLOADS[name]
    wanted, reached = {}, True
    jobs = [("workloads", workload.rust), (workload.image, workload.python)]
    for image, inside in [*jobs, *FURTHER.get(name, [])]:
        progress, seconds = until_objective(image, inside, data, workload.course, wanted)
        wanted = wanted or progress["targets"]
        acceptable, objective = seconds
        reached &= objective is not None
        shown = [f"{at:8.1f}s" if at is not None else f"{'never':>9}" for at in seconds]
        print(
            f"{' '.join(inside):24}{progress.get('dataset') or '':26}"
            f"{wanted['acceptable']:>8g}{wanted['objective']:>8g}{progress['step'] or 0:>8}"
            f"{''.join(shown)}",
            flush=True,
        )
    return reached


def until_objective(
    image: str, inside: list[str], data: str, steps: int, wanted: dict[str, float]
) -> tuple[dict, list[float | None]]:
    """Runs a job of this many steps until it reports its objective or ends; returns the last
    report, and the seconds to both targets."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        status, name = Path(folder, "progress.json"), f"paceline-measure-{os.getpid()}"
        own = ["--volume", f"{folder}:/status", "--env", "PACELINE_STATUS_FILE=/status/progress.json"]
        for tier in ("acceptable", "objective") if wanted else ():
            own += ["--env", f"PACELINE_{tier.upper()}={wanted[tier]}"]
        line = command(image, inside, data, steps, threads=2)
        line[3:3] = ["--detach", "--name", name, *own]
        began = time.time()
        try:
            subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
            while time.time() - began < TIMEOUT:
                time.sleep(0.5)
                progress = json.loads(status.read_text()) if status.exists() else None
                if progress and (progress["reached"]["objective_at"] or is_over(progress)):
                    break
            else:
                if progress is None:
                    sys.exit(f"{' '.join(inside)} did not report anything")
        finally:
            subprocess.run(["docker", "rm", "--force", name], capture_output=True, check=False)
    moments = (progress["reached"][f"{tier}_at"] for tier in ("acceptable", "objective"))
    return progress, [at and at - began for at in moments]


def is_over(progress: dict) -> bool:
    return progress["state"] in ("finished", "failed")


def main() -> int:
    what, *names = sys.argv[1:] or ["--help"]
    measures = {
        "speed": (speed, f"{'workload':10}{'threads':>8}{'Rust ms':>12}{'Python ms':>12}{'ratio':>9}"),
        "together": (together, f"{'workload':10}{'throughput':>10}"),
        "targets": (
            targets,
            f"{'program':24}{'data':26}{'accept.':>8}{'object.':>8}{'steps':>8}"
            f"{'acceptable':>9}{'objective':>10}",
        ),
    }
    if what not in measures or not set(names) <= set(WORKLOADS):
        print(__doc__.strip())
        return 0 if what in ("-h", "--help") else 2
    data = subprocess.run([HERE / "data.sh"], check=True, capture_output=True, text=True)
    folder = data.stdout.split()[-1]
    measure, head = measures[what]
    print(head, flush=True)
    enough = [measure(name, folder) for name in names or WORKLOADS]
    return 0 if all(enough) else 1


if __name__ == "__main__":
    sys.exit(main())
