"""`python -m paceline`, with a program in the place of the sidecar."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import unittest
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from stub import LIMIT, SOURCE

import paceline
from paceline import _command


@contextmanager
def program(script: str, name: str = "paceline-sidecar") -> Iterator[str]:
    """A shell script in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        yield str(path)


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    kept = {key: value for key, value in os.environ.items() if key != "PACELINE_SIDECAR"}
    return subprocess.Popen(
        [sys.executable, "-m", "paceline", *arguments],
        env={**kept, "PYTHONPATH": str(SOURCE), **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


class Running(unittest.TestCase):
    def test_arguments_and_exit_code_are_the_programs(self) -> None:
        with program('echo "$# $1 $2"; exit 7') as path:
            child = start("exec", "a b", PACELINE_SIDECAR=path)
            out, error = child.communicate(timeout=LIMIT)
        self.assertEqual((child.returncode, out, error), (7, "2 exec a b\n", ""))

    def test_program_is_found_on_the_path(self) -> None:
        with program("exit 9") as path:
            # Shells need their own commands.
            child = start(PATH=f"{os.path.dirname(path)}:/usr/bin:/bin")
            child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 9)

    def test_signal_reaches_the_program(self) -> None:
        # It is the same process: its number is that of the child.
        script = "trap 'exit 42' TERM; echo $$; while :; do sleep 0.01; done"
        with program(script) as path:
            child = start(PACELINE_SIDECAR=path)
            assert child.stdout is not None
            self.assertEqual(int(child.stdout.readline()), child.pid)
            child.send_signal(signal.SIGTERM)
            child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 42)

    def test_missing_program_is_an_error_that_says_what_to_do(self) -> None:
        # With an empty folder in the place of those where pip puts programs.
        with tempfile.TemporaryDirectory() as empty:
            with mock.patch.object(_command, "_folders", lambda: iter([empty])):
                with self.assertRaisesRegex(
                    FileNotFoundError, "pip install paceline.*PACELINE_SIDECAR"
                ):
                    _command.find({"PATH": empty})
        child = start("--version", PACELINE_SIDECAR="/nowhere/sidecar")
        _, error = child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 1)
        self.assertIn('invalid PACELINE_SIDECAR "/nowhere/sidecar": expected', error)

    def test_file_without_a_program_is_an_error(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "paceline-sidecar"
            path.write_bytes(b"\x7fELF, but not really")
            path.chmod(0o755)
            child = start(PACELINE_SIDECAR=str(path))
            _, error = child.communicate(timeout=LIMIT)
        self.assertEqual(child.returncode, 1)
        self.assertIn(f"paceline: cannot run {path}: ", error)


class Log(unittest.TestCase):
    def read(self, script: str) -> paceline.History:
        with program(script) as path, tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write("epoch one\n")
            log.flush()
            with mock.patch.dict(os.environ, PACELINE_SIDECAR=path):
                return paceline.history(log.name)

    def test_log_is_read_by_the_program(self) -> None:
        past = self.read(
            """echo '{"step":1,"total_steps":9}'; echo '{"loss":2.5}'; echo '{"step":2,"loss":1.5}'
            [ "$1 $2 $3" = "replay --json --" ]"""
        )
        self.assertEqual((past["step"], past["loss"]), ([1, 2], [2.5, 1.5]))
        self.assertEqual(past["to"], [None, None])

    def test_log_without_a_loss_is_an_error_that_says_what_to_do(self) -> None:
        with self.assertRaisesRegex(ValueError, "it has no loss; .*replay --explain"):
            self.read("""echo '{"step":1}'""")

    def test_failure_of_the_program_is_passed_on(self) -> None:
        with self.assertRaisesRegex(ValueError, "cannot read .*: bad luck"):
            self.read("echo bad luck >&2; exit 1")


if __name__ == "__main__":
    unittest.main()
