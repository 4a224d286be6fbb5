"""Installs the packages of a folder into a fresh environment, and uses them as a newcomer would.

    python installed.py DIST [REPEATS]

It needs no network and no package beside `venv`. Prints one line, with the medians of REPEATS runs.
"""

from __future__ import annotations

import glob
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
import venv
from typing import Any

# Seconds; only a hang takes so long.
LIMIT = 300.0
STEPS = 60
# A training in the words of many: it waits at its end, so that its figures can be read.
TRAIN = f"""
import sys, time
for step in range(1, {STEPS} + 1):
    time.sleep(0.005)
    print(f"step {{step}}/{STEPS} loss {{1 / step:.6f}}")
sys.stdin.read()
sys.exit(3)
"""
# What a notebook would do, beside the job.
READ = """
import json, sys, paceline
paceline.show(sys.argv[1])
past = paceline.history(sys.argv[1])
print(json.dumps({"version": paceline.__version__, "past": past}))
"""


def main() -> None:
    dist = sys.argv[1]
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        programs = os.path.join(folder, "bin")
        # The environment is not activated, so nothing of it is found by chance.
        python = os.path.join(programs, "python")
        installs = [install(python, dist, "paceline") for _ in range(repeats)]
        version = check_versions(programs)
        figures = [first_figure(folder) for _ in range(repeats)]
        line = (
            f"Python {platform.python_version()}, {libc()}: paceline {version}: "
            f"pip install {statistics.median(installs):.2f} s, "
            f"first figure {statistics.median(figures):.2f} s"
        )
        if glob.glob(os.path.join(dist, "paceline_allocator-*.whl")):
            installs = [install(python, dist, "paceline-allocator") for _ in range(repeats)]
            runs = [simulate(programs) for _ in range(repeats)]
            line += (
                f"; paceline-allocator: pip install {statistics.median(installs):.2f} s, "
                f"simulate FC-3 {statistics.median(runs):.2f} s"
            )
        else:
            line += "; paceline-allocator: skipped, no wheel"
        print(f"{line} (medians of {repeats})")


def libc() -> str:
    name, version = platform.libc_ver()
    return f"{name} {version}" if name else "another C library"


def install(python: str, dist: str, package: str) -> float:
    """Seconds of `pip install`."""
    began = time.monotonic()
    command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(*command, "--no-index", "--find-links", dist, "--force-reinstall", package)
    return time.monotonic() - began


def check_versions(programs: str) -> str:
    """The program, `python -m paceline` and the Python package have one version."""
    name, version = run(os.path.join(programs, "paceline-sidecar"), "--version").split()
    module = run(os.path.join(programs, "python"), "-m", "paceline", "--version").split()
    assert [name, version] == module == ["paceline-sidecar", version], module
    return version


def first_figure(folder: str) -> float:
    """Seconds from the start of a job to its first loss; checks all its figures after it."""
    train = os.path.join(folder, "train.py")
    with open(train, "w") as file:
        file.write(TRAIN)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{taken.getsockname()[1]}"
    began = time.monotonic()
    job = subprocess.Popen(
        [os.path.join(folder, "bin", "paceline-sidecar"), "exec", "--", sys.executable, train],
        env={**os.environ, "PACELINE_LISTEN": address, "PACELINE_JOB": "first"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait(job, address, lambda progress: progress["eval"]["value"] is not None)
        seconds = time.monotonic() - began
        progress = wait(job, address, lambda progress: progress["step"] == STEPS)
        last = sum(1 / step for step in range(STEPS - 4, STEPS + 1)) / 5
        assert abs(progress["eval"]["value"] - last) < 1e-6, progress["eval"]
        assert progress["eval"]["count"] == progress["total_steps"] == STEPS, progress
        with urllib.request.urlopen(f"http://{address}/", timeout=LIMIT) as page:
            assert page.read().startswith(b"<!DOCTYPE html>")
        check_python(os.path.join(folder, "bin", "python"), address)
        out, error = job.communicate("", timeout=LIMIT)
    finally:
        job.kill()
        job.wait()
    assert job.returncode == 3, (job.returncode, error)
    assert out.count("\n") == STEPS and f"http://{address}/" in error, (out, error)
    return seconds


def check_python(python: str, address: str) -> None:
    # The last reading of the past comes up to a second after its reports.
    end = time.monotonic() + LIMIT
    while True:
        line, url, rest = run(python, "-c", READ, address).split("\n", 2)
        value = json.loads(rest)
        past = value["past"]
        if past["step"] and past["step"][-1] == STEPS:
            break
        assert time.monotonic() < end, past
    assert line.startswith(f"first: running, step {STEPS} of {STEPS} (100 %), loss 0.017"), line
    assert url == f"http://{address}/", url
    assert len({len(column) for column in past.values()}) == 1
    assert max(past["loss_high"]) <= 1 and min(past["loss_low"]) >= 1 / STEPS - 1e-6


def simulate(programs: str) -> float:
    """Seconds of a comparison of all policies."""
    began = time.monotonic()
    table = run(os.path.join(programs, "paceline"), "simulate", "FC-3")
    seconds = time.monotonic() - began
    assert "mean completion" in table and "flowcon" in table and "bound" in table, table
    return seconds


def wait(job: Any, address: str, holds: Any) -> dict[str, Any]:
    """The progress, once it is as wanted."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            with urllib.request.urlopen(f"http://{address}/v1/progress", timeout=LIMIT) as answer:
                progress: dict[str, Any] = json.load(answer)
            if holds(progress):
                return progress
        except OSError:
            progress = {}
        assert job.poll() is None, job.communicate()
        assert time.monotonic() < end, progress
        time.sleep(0.005)


def run(*command: str) -> str:
    """The output of a command that must succeed."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert done.returncode == 0, f"{command}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


if __name__ == "__main__":
    main()
