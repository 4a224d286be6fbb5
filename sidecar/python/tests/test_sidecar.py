"""The package with the real sidecar, if PACELINE_SIDECAR names its binary."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import unittest
import urllib.request
from typing import Any

from stub import LIMIT, run, until

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
        finally:
            sidecar.terminate()
            sidecar.wait()
        self.assertEqual((progress["step"], progress["rejected"]), (40, 2))
        self.assertEqual((progress["eval"]["count"], progress["eval"]["best"]), (38, 0.05))
        self.assertEqual(progress["validation"]["value"], 0.25)
        # The first batch may be ignored, because it is the slowest in many programs.
        self.assertIn(progress["batch_latency"]["count"], (39, 40))
        self.assertTrue(0.01 <= progress["batch_latency"]["p50"] < LIMIT)


if __name__ == "__main__":
    unittest.main()
