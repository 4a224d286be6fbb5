"""The callback with the real Lightning."""

from __future__ import annotations

import json
import unittest

from stub import Stub, needs, run

PROGRAM = """
import json, lightning, torch
from torch.utils.data import DataLoader, TensorDataset
from paceline.lightning import PacelineCallback

losses, held_out = [], []

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
    def loss(self, batch):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[0][:, :1])
    def training_step(self, batch, index):
        loss = self.loss(batch)
        losses.append(loss.item())
        return loss
    def validation_step(self, batch, index):
        self.log("valid_loss", self.loss(batch))
    def on_validation_end(self):
        held_out.append(self.trainer.callback_metrics["valid_loss"].item())
    def test_step(self, batch, index):
        self.log("my_test_loss", self.loss(batch))
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

torch.manual_seed(7)
data = DataLoader(TensorDataset(torch.randn(32, 8)), 8)
trainer = lightning.Trainer(
    max_epochs=2, accelerator="cpu", logger=False, enable_checkpointing=False,
    enable_progress_bar=False, enable_model_summary=False,
    callbacks=[PacelineCallback(test_loss="my_test_loss")])
model = Model()
trainer.fit(model, data, data)
test = trainer.test(model, data, verbose=False)
# Lightning's sanity check runs a validation first.
print(json.dumps({"losses": losses, "val": held_out[-2:], "test": test[0]["my_test_loss"]}))
"""
# Lightning divides the losses of an automatic optimization only. It refuses the number at the start of a
# manual one, so a callback sets it, like that of a schedule.
ACCUMULATION = """
import json, lightning, torch
from torch.utils.data import DataLoader, TensorDataset
from paceline.lightning import PacelineCallback

losses = []

class Model(lightning.LightningModule):
    def __init__(self, automatic):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)
        self.automatic_optimization = automatic
    def training_step(self, batch, index):
        loss = torch.nn.functional.mse_loss(self.layer(batch[0]), batch[0][:, :1])
        losses.append(loss.item())
        return {"loss": loss} if index % 2 else loss
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)

class Schedule(lightning.pytorch.callbacks.Callback):
    def on_train_batch_start(self, trainer, *_):
        trainer.accumulate_grad_batches = 2

torch.manual_seed(7)
data = DataLoader(TensorDataset(torch.randn(32, 8)), 8)
for automatic in (True, False):
    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
        callbacks=[Schedule(), PacelineCallback()])
    trainer.fit(Model(automatic), data)
print(json.dumps(losses))
"""


@needs("lightning", "torch")
class Lightning(unittest.TestCase):
    def test_losses_and_times_of_lightning_arrive(self) -> None:
        with Stub() as stub:
            done = run(PROGRAM, stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = json.loads(done.stdout.splitlines()[-1])
        batches = [report for report in stub.reports if "batch_seconds" in report]
        self.assertEqual([report["loss"] for report in batches], truth["losses"])
        self.assertEqual([report["step"] for report in batches], list(range(1, 9)))
        self.assertEqual([report["epoch"] for report in batches], 4 * [0] + 4 * [1])
        self.assertEqual({report["total_steps"] for report in batches}, {8})
        validations = [report for report in stub.reports if "val_loss" in report]
        self.assertEqual([report["val_loss"] for report in validations], truth["val"])
        self.assertEqual([report["step"] for report in validations], [4, 8])
        tests = [report["test_loss"] for report in stub.reports if "test_loss" in report]
        self.assertEqual(tests, [truth["test"]])

    def test_loss_of_accumulated_batches_is_that_of_the_step(self) -> None:
        with Stub() as stub:
            done = run(ACCUMULATION, stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = json.loads(done.stdout.splitlines()[-1])
        batches = [report for report in stub.reports if "batch_seconds" in report]
        self.assertEqual(len(truth), 8)
        self.assertEqual([report["loss"] for report in batches], truth)


if __name__ == "__main__":
    unittest.main()
