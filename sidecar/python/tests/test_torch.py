"""Tensors as losses, and the worker processes of a DataLoader."""

from __future__ import annotations

import unittest

from stub import Stub, needs, run

TENSORS = """
import torch, paceline
weight = torch.ones(3, requires_grad=True)
loss = (weight * 2).sum()
paceline.report(loss=loss)
# Later changes do not affect the report.
with torch.no_grad():
    loss.mul_(100)
paceline.report(loss=loss.detach().half())
class Device(torch.Tensor):
    # Like a tensor on a GPU: it is read later, in another thread.
    is_cpu = False
late = torch.tensor(5.0).as_subclass(Device)
paceline.report(loss=late)
late.mul_(100)
"""

LOADER = """
import torch, paceline
from torch.utils.data import DataLoader, Dataset

class Data(Dataset):
    def __len__(self): return 16
    def __getitem__(self, at):
        paceline.report(loss=-1.0)
        return float(at)

if __name__ == "__main__":
    for context in "fork", "spawn":
        loader = DataLoader(Data(), 4, num_workers=2, multiprocessing_context=context)
        batches = paceline.track(loader)
        for batch in batches:
            batches.loss(batch.mean())
"""


@needs("torch")
class Torch(unittest.TestCase):
    def test_tensors_are_losses(self) -> None:
        with Stub() as stub:
            done = run(TENSORS, stub.address)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            self.assertEqual([report["loss"] for report in stub.reports], [6.0, 600.0, 5.0])

    def test_data_loader_workers_report_nothing(self) -> None:
        with Stub() as stub:
            done = run(LOADER, stub.address)
            self.assertEqual(done.returncode, 0, done.stderr)
            losses = [report["loss"] for report in stub.reports]
            self.assertEqual(losses, 2 * [1.5, 5.5, 9.5, 13.5])


if __name__ == "__main__":
    unittest.main()
