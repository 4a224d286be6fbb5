"""The package and the sidecar itself, where PACELINE_SIDECAR names its binary."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
import unittest
import urllib.request

from stub import run

BINARY = os.environ.get("PACELINE_SIDECAR")

PROGRAM = """
import math, time, paceline
for epoch in range(2):
    batches = paceline.track(range(20), epoch=epoch)
    for item in batches:
        time.sleep(0.01)
        batches.loss(math.nan if item == 5 else 1 / (item + 1))
    paceline.report(val_loss=0.25, epoch=epoch)
assert paceline.flush(5)
print(paceline.stats())
"""


@unittest.skipIf(BINARY is None, "PACELINE_SIDECAR names no binary")
class Sidecar(unittest.TestCase):
    def test_the_sidecar_understands_all_and_publishes_it(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{taken.getsockname()[1]}"
        sidecar = subprocess.Popen([str(BINARY), "--listen", address], stderr=subprocess.DEVNULL)
        try:
            done = run(PROGRAM, address)
            self.assertIn("Stats(sent=42, waiting=0, dropped=0, rejected=0)", done.stdout)
            time.sleep(0.1)
            with urllib.request.urlopen(f"http://{address}/v1/progress") as answer:
                progress = json.load(answer)
        finally:
            sidecar.terminate()
            sidecar.wait()
        self.assertEqual((progress["step"], progress["rejected"]), (40, 2))
        self.assertEqual((progress["eval"]["count"], progress["eval"]["best"]), (38, 0.05))
        self.assertEqual(progress["validation"]["value"], 0.25)
        # The first batch may be left out, as it is slower than all others in many programs.
        self.assertIn(progress["batch_latency"]["count"], (39, 40))
        self.assertTrue(0.01 <= progress["batch_latency"]["p50"] < 0.1)


if __name__ == "__main__":
    unittest.main()
