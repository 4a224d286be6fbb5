"""Shared by the training scripts: flags, threads, and the end by a signal."""

import argparse
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn


class Parser(argparse.ArgumentParser):
    """A parser with errors of one line."""

    def error(self, message: str) -> NoReturn:
        fail(message)


def fail(message: object) -> NoReturn:
    """Ends the program like a wrong flag."""
    print(f"{Path(sys.argv[0]).name}: error: {message}", file=sys.stderr)
    sys.exit(2)


def parser(description: str | None, batch_size: int | None, epochs: int = 10) -> Parser:
    flags = Parser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    number(flags, "--epochs", epochs, "passes over the data")
    number(flags, "--batch-size", batch_size, "samples in a batch")
    number(flags, "--steps", None, "end after N batches, regardless of the epochs")
    add = flags.add_argument
    add("--threads", type=threads, default="auto", metavar="N", help="[auto: the available CPUs]")
    add("--seed", type=natural, default=1, metavar="N", help="of weights, order and noise [1]")
    return flags


def number(flags: Parser, name: str, default: int | None, what: str) -> None:
    shown = "" if default is None else f" [{default}]"
    flags.add_argument(name, type=positive, default=default, metavar="N", help=what + shown)


def add_data(flags: Parser) -> None:
    folder = os.environ.get("PACELINE_DATA")
    flags.add_argument(
        "--data", type=Path, default=folder, metavar="DIR", help="of images [PACELINE_DATA]"
    )


def add_log_interval(flags: Parser, default: int = 10) -> None:
    number(flags, "--log-interval", default, "batches between two prints")


def natural(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def positive(text: str) -> int:
    if natural(text) == 0:
        raise argparse.ArgumentTypeError("must be above 0")
    return int(text)


def threads(text: str) -> int:
    return available_cpus() if text == "auto" else positive(text)


def available_cpus() -> int:
    """The CPUs that affinity and the control group's quota allow, but at least one."""
    return max(1, int(min(len(os.sched_getaffinity(0)), quota())))


def quota(root: Path = Path("/")) -> float:
    """The CPUs that the control groups of this process allow: the tightest limit applies."""
    try:
        folders = list(cpu_groups(root))
    except OSError:
        folders = []
    return min((limit(folder) for folder in folders), default=float("inf"))


def cpu_groups(root: Path) -> Iterator[Path]:
    """The control groups of this process that may limit its CPUs, of either version."""
    groups = (root / "proc/self/cgroup").read_text().splitlines()
    for mounted in (root / "proc/self/mountinfo").read_text().splitlines():
        place, _, what = mounted.partition(" - ")
        top, folder = place.split()[3:5]
        kind, _, options = what.split()[:3]
        controller = {"cgroup": "cpu", "cgroup2": ""}.get(kind)
        if controller is None or (controller and controller not in options.split(",")):
            continue
        for group in groups:
            _, controllers, path = group.split(":", 2)
            if controller in controllers.split(","):
                # A container's own group is the top of what it sees.
                below = [part for part in Path(os.path.relpath(path, top)).parts if part != ".."]
                for depth in range(len(below) + 1):
                    yield (root / folder[1:]).joinpath(*below[:depth])


def limit(group: Path) -> float:
    try:
        if (group / "cpu.max").exists():
            most, period = (group / "cpu.max").read_text().split()
        else:
            most = (group / "cpu.cfs_quota_us").read_text().strip()
            period = (group / "cpu.cfs_period_us").read_text()
    except OSError:
        return float("inf")
    return float("inf") if most in ("max", "-1") else int(most) / int(period)


class Stop:
    """Whether SIGTERM or Ctrl-C has asked the program to end. A second one ends it at once."""

    def __init__(self) -> None:
        self.requested = False
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._ask)

    def _ask(self, number: int, _frame: object) -> None:
        self.requested = True
        signal.signal(number, signal.SIG_DFL)
