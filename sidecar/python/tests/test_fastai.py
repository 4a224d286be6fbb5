"""The callback with the real fastai."""

from __future__ import annotations

import json
import unittest

from stub import Stub, needs, run

PROGRAM = """
import json, torch
from fastai.data.core import DataLoaders
from fastai.data.load import DataLoader
from fastai.callback.schedule import Learner
from fastai.callback.core import Callback
from paceline.fastai import PacelineCallback

class Truth(Callback):
    losses, held_out = [], []
    order = 80
    def after_batch(self):
        if self.training and not hasattr(self.learn, "lr_finder"):
            self.losses.append(self.loss.item())
    def after_epoch(self):
        values = self.learn.recorder.values[-1]
        # After a training: its loss, that on held-out data.
        if len(values) == 2 and not hasattr(self.learn, "lr_finder"):
            self.held_out.append(values[1])

torch.manual_seed(7)
x = torch.randn(32, 4)
data = [(row, row[:1]) for row in x]
loaders = DataLoaders(DataLoader(data, bs=8, shuffle=True), DataLoader(data[:16], bs=8))
learn = Learner(
    loaders, torch.nn.Linear(4, 1), loss_func=torch.nn.functional.mse_loss,
    cbs=[Truth(), PacelineCallback()])
learn.remove_cb(learn.progress) if hasattr(learn, "progress") else None
with learn.no_logging():
    if FINDS:
        learn.lr_find(num_it=4, show_plot=False)
    learn.fit(2, 0.1)
    learn.fit(1, 0.1)
    before = list(Truth.losses)
    test = learn.validate()
    learn.get_preds()
print(json.dumps({"losses": before, "val": Truth.held_out, "test": test[0]}))
"""


@needs("fastai", "torch")
class Fastai(unittest.TestCase):
    def check(self, finds: bool) -> None:
        with Stub() as stub:
            done = run(f"FINDS = {finds}\n{PROGRAM}", stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("shadowing", done.stderr)
            truth = json.loads(done.stdout.splitlines()[-1])
        batches = [report for report in stub.reports if "loss" in report]
        self.assertEqual([report["loss"] for report in batches], truth["losses"])
        self.assertEqual([report["step"] for report in batches], list(range(1, 13)))
        self.assertEqual([report["epoch"] for report in batches], 4 * [0] + 4 * [1] + 4 * [0])
        self.assertEqual([report["total_steps"] for report in batches], 8 * [8] + 4 * [12])
        self.assertTrue(all(0 < report["batch_seconds"] < 60 for report in batches))
        held_out = [report for report in stub.reports if "val_loss" in report]
        self.assertEqual([report["val_loss"] for report in held_out], truth["val"])
        self.assertEqual([report["step"] for report in held_out], [4, 8, 12])
        tests = [report["test_loss"] for report in stub.reports if "test_loss" in report]
        self.assertEqual(tests, [truth["test"]])

    def test_losses_and_times_of_fastai_arrive(self) -> None:
        self.check(finds=False)

    def test_search_for_a_learning_rate_reports_nothing(self) -> None:
        self.check(finds=True)


if __name__ == "__main__":
    unittest.main()
