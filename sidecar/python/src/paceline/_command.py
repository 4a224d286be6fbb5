"""Finds and runs the program `paceline-sidecar`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence

NAME = "paceline-sidecar"
# Seconds for reading a log: a gigabyte takes some ten.
REPLAY_TIMEOUT = 120.0
INSTALL = (
    "install it with `pip install paceline` from a wheel, put it on PATH, or set PACELINE_SIDECAR to "
    "its path"
)


def find(environment: Mapping[str, str] = os.environ) -> str:
    """The path of the program: `PACELINE_SIDECAR`, that of this package, or the first on `PATH`.

    Raises `FileNotFoundError`, which says what to do.
    """
    given = environment.get("PACELINE_SIDECAR", "").strip()
    if given:
        if _is_program(given):
            return given
        raise FileNotFoundError(
            f'invalid PACELINE_SIDECAR "{given}": expected the path of a program, for example '
            f"/usr/local/bin/{NAME}"
        )
    for folder in _folders():
        path = os.path.join(folder, NAME + (".exe" if os.name == "nt" else ""))
        if _is_program(path):
            return path
    path_of = shutil.which(NAME, path=environment.get("PATH"))
    if path_of is None:
        raise FileNotFoundError(f"cannot find {NAME}: it is not installed; {INSTALL}")
    return path_of


def main(arguments: Sequence[str]) -> int:
    """Runs the program in the place of this process, so that signals and exit codes are its own."""
    try:
        program = find()
        if os.name != "nt":
            sys.stdout.flush()
            sys.stderr.flush()
            os.execv(program, [NAME, *arguments])
        return subprocess.run([program, *arguments]).returncode
    except FileNotFoundError as failure:
        print(f"paceline: {failure}", file=sys.stderr)
    except OSError as failure:
        print(f"paceline: cannot run {program}: {failure.strerror}; {INSTALL}", file=sys.stderr)
    return 1


def replay(path: str) -> str:
    """The reports in a log, as JSON lines; raises `FileNotFoundError` or `ValueError`."""
    try:
        command = [find(), "replay", "--json", "--", path]
    except FileNotFoundError as failure:
        raise FileNotFoundError(f"cannot read the log {path}: {failure}") from None
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=REPLAY_TIMEOUT
        )
    except subprocess.TimeoutExpired:
        raise ValueError(
            f"cannot read {path}: it takes longer than {REPLAY_TIMEOUT:.0f} s; read a part of it"
        ) from None
    if done.returncode != 0:
        raise ValueError(f"cannot read {path}: {done.stderr.strip()}")
    return done.stdout


def _folders() -> Iterator[str]:
    """Where pip puts programs: of this environment, of the user, of `pip install --target`."""
    yield sysconfig.get_path("scripts")
    user = f"{os.name}_user"
    if user in sysconfig.get_scheme_names():
        yield sysconfig.get_path("scripts", user)
    yield os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")


def _is_program(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)
