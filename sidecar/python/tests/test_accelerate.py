"""The tracker with the real Accelerate."""

from __future__ import annotations

import json
import unittest

from stub import Stub, needs, run

PROGRAM = """
import json, torch
from accelerate import Accelerator
from paceline.accelerate import PacelineTracker

torch.manual_seed(7)
accelerator = Accelerator(cpu=True, log_with=PacelineTracker(mean="interval"))
accelerator.init_trackers("toy", config={"max_train_steps": 8, "name": "toy"})
model = torch.nn.Linear(4, 1)
model, optimizer = accelerator.prepare(model, torch.optim.SGD(model.parameters(), 0.1))
losses, held_out = [], []
for step in range(1, 9):
    x = torch.randn(8, 4)
    loss = torch.nn.functional.mse_loss(model(x), x[:, :1])
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    if step % 2 == 0:
        losses.append(loss.item())
        accelerator.log({"train_loss": loss.detach(), "lr": 0.1, "epoch": step / 4}, step=step)
    if step % 4 == 0:
        held_out.append(loss.item() * 2)
        accelerator.log({"eval_loss": held_out[-1], "perplexity": 1.0}, step=step)
# Neither may end the training.
accelerator.log({"loss": "none"}, step="none")
accelerator.log({"text": "hello"})
accelerator.end_training()
print(json.dumps({"losses": losses, "val": held_out}))
"""

ONCE_AN_EPOCH = """
from accelerate import Accelerator
from paceline.accelerate import PacelineTracker

accelerator = Accelerator(cpu=True, log_with=PacelineTracker(loss="objective", test_loss="held"))
accelerator.init_trackers("toy")
for epoch in range(2):
    accelerator.log({"objective": 1.0 / (epoch + 1), "held": 0.5, "epoch": epoch}, step=epoch)
"""


@needs("accelerate", "torch")
class Accelerate(unittest.TestCase):
    def test_logged_losses_and_times_arrive(self) -> None:
        with Stub() as stub:
            done = run(PROGRAM, stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = json.loads(done.stdout.splitlines()[-1])
        self.assertEqual(stub.reports[0]["total_steps"], 8)
        logs = [report for report in stub.reports if "loss" in report]
        self.assertEqual([report["loss"] for report in logs], truth["losses"])
        self.assertEqual([report["step"] for report in logs], [2, 4, 6, 8])
        self.assertEqual([report["epoch"] for report in logs], [0.5, 1.0, 1.5, 2.0])
        self.assertEqual({report["mean"] for report in logs}, {"interval"})
        self.assertTrue(all(0 < report["batch_seconds"] < 60 for report in logs))
        held_out = [report for report in stub.reports if "val_loss" in report]
        self.assertEqual([report["val_loss"] for report in held_out], truth["val"])
        self.assertEqual([report["step"] for report in held_out], [4, 8])

    def test_log_once_an_epoch_has_no_step_and_no_time(self) -> None:
        with Stub() as stub:
            done = run(ONCE_AN_EPOCH, stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
        for report in stub.reports:
            report.pop("at")
        self.assertEqual(
            stub.reports,
            [
                {"loss": 1.0, "mean": "epoch", "epoch": 0.0},
                {"test_loss": 0.5, "epoch": 0.0},
                {"loss": 0.5, "mean": "epoch", "epoch": 1.0},
                {"test_loss": 0.5, "epoch": 1.0},
            ],
        )


if __name__ == "__main__":
    unittest.main()
