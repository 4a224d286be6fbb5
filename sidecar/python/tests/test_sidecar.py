"""The package with the real sidecar, if PACELINE_SIDECAR names its binary."""

from __future__ import annotations

import contextlib
import io
import json
import os
import socket
import subprocess
import sys
import tempfile
import unittest
import urllib.request
from typing import Any

from stub import LIMIT, SOURCE, run, until

import paceline

BINARY = os.environ.get("PACELINE_SIDECAR")

PROGRAM = """
import math, time, paceline
for epoch in range(2):
    batches = paceline.track(range(20), epoch=epoch)
    for item in batches:
        time.sleep(0.01)
        batches.loss(math.nan if item == 5 else 1 / (item + 1))
    paceline.report(val_loss=0.25, epoch=epoch)
assert paceline.flush()
print(paceline.stats())
"""


@unittest.skipIf(BINARY is None, "PACELINE_SIDECAR names no binary")
class Sidecar(unittest.TestCase):
    def test_sidecar_accepts_and_publishes_all_reports(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{taken.getsockname()[1]}"
        sidecar = subprocess.Popen([str(BINARY), "--listen", address], stderr=subprocess.DEVNULL)
        try:
            done = run(PROGRAM, address)
            self.assertIn("Stats(sent=42, waiting=0, dropped=0, rejected=0)", done.stdout)
            progress: dict[str, Any] = {}

            def is_whole() -> bool:
                with urllib.request.urlopen(f"http://{address}/v1/progress") as answer:
                    progress.update(json.load(answer))
                return progress["step"] == 40 and progress["validation"] is not None

            self.assertTrue(until(is_whole), progress)
            # The last reading of the past comes a moment after its reports.
            self.assertTrue(until(lambda: paceline.history(address)["step"][-1:] == [40]))
            past = paceline.history(address)
            with contextlib.redirect_stdout(io.StringIO()) as shown:
                paceline.show(address)
        finally:
            sidecar.terminate()
            sidecar.wait()
        self.assertEqual(len({len(column) for column in past.values()}), 1)
        lows = [value for value in past["loss_low"] if value is not None]
        self.assertTrue(lows and min(lows) >= 0.05)
        self.assertIn(0.25, past["validation"])
        self.assertIn("step 40", shown.getvalue())
        self.assertIn(f"http://{address}/", shown.getvalue())
        self.assertEqual((progress["step"], progress["rejected"]), (40, 2))
        self.assertEqual((progress["eval"]["count"], progress["eval"]["best"]), (38, 0.05))
        self.assertEqual(progress["validation"]["value"], 0.25)
        # The first batch may be ignored, because it is the slowest in many programs.
        self.assertIn(progress["batch_latency"]["count"], (39, 40))
        self.assertTrue(0.01 <= progress["batch_latency"]["p50"] < LIMIT)

    def test_two_jobs_under_exec_report_to_their_own_sidecars(self) -> None:
        program = """
import json, os, time, urllib.request, paceline
paceline.report(loss=float(os.environ["LOSS"]))
assert paceline.flush()
time.sleep(0.5)
url = "http://" + os.environ["PACELINE_REPORT_TO"] + "/v1/progress"
progress = json.load(urllib.request.urlopen(url))
print(progress["job"], progress["eval"]["value"], progress["eval"]["count"])
"""
        with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
            file.write(program)
            file.flush()
            jobs = [
                subprocess.Popen(
                    [str(BINARY), "exec", "--job", f"job-{loss}", "--", sys.executable, file.name],
                    # Of the same default, each takes a port that is free.
                    env={**os.environ, "PYTHONPATH": str(SOURCE), "LOSS": loss},
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                )
                for loss in ("1.5", "2.5")
            ]
            outputs = [job.communicate(timeout=LIMIT)[0] for job in jobs]
        self.assertEqual(outputs, ["job-1.5 1.5 1\n", "job-2.5 2.5 1\n"])

    def test_paused_sidecar_counts_each_report_once(self) -> None:
        program = """
import os, signal, time, paceline
sidecar = os.getppid()
for step in range(1, 101):
    paceline.report(loss=1.0, step=step)
    time.sleep(0.005)
    if step == 50:
        os.kill(sidecar, signal.SIGSTOP)
# Longer than an answer is waited for.
time.sleep(2.5)
os.kill(sidecar, signal.SIGCONT)
assert paceline.flush(60)
print(paceline.stats())
"""
        with tempfile.TemporaryDirectory() as folder:
            script, status = (os.path.join(folder, name) for name in ("job.py", "status.json"))
            with open(script, "w") as file:
                file.write(program)
            command = [str(BINARY), "exec", "--status-file", status, "--", sys.executable, script]
            kept = {**os.environ, "PYTHONPATH": str(SOURCE)}
            done = subprocess.run(
                command, env=kept, timeout=LIMIT, capture_output=True, text=True, check=True
            )
            with open(status) as file:
                progress = json.load(file)
        self.assertEqual(done.stdout, "Stats(sent=100, waiting=0, dropped=0, rejected=0)\n")
        self.assertEqual((progress["step"], progress["eval"]["count"]), (100, 100))

    def test_log_is_read_as_the_sidecar_reads_it(self) -> None:
        lines = "".join(f"step {step}/20 loss {1 / step:.6f}\n" for step in range(1, 21))
        with tempfile.NamedTemporaryFile("w", suffix=".log") as log:
            log.write(lines)
            log.flush()
            past = paceline.history(log.name)
        self.assertEqual(past["step"], list(range(1, 21)))
        self.assertEqual(past["loss"], [round(1 / step, 6) for step in range(1, 21)])

    def test_module_is_the_program(self) -> None:
        kept = {**os.environ, "PYTHONPATH": str(SOURCE)}
        module = subprocess.run(
            [sys.executable, "-m", "paceline", "--version"],
            env=kept,
            capture_output=True,
            text=True,
        )
        self.assertEqual((module.returncode, module.stderr), (0, ""))
        self.assertEqual(module.stdout, f"paceline-sidecar {paceline.__version__}\n")


if __name__ == "__main__":
    unittest.main()
