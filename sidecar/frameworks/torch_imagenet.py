"""Trains a classifier with PyTorch; prints values and means as the ImageNet example does."""

import argparse
import time

import torch
import torch.nn.functional as F

from torch_data import classifier, loaders
from truth import Clock, Truth


class Meter:
    """The last value and the mean of all values."""

    def __init__(self, name: str, form: str) -> None:
        self.name, self.form = name, form
        self.value = self.total = 0.0
        self.weight = 0

    def add(self, value: float, weight: int = 1) -> None:
        self.value = value
        self.total += value * weight
        self.weight += weight

    def __str__(self) -> str:
        mean = self.total / self.weight
        return f"{self.name} {self.value:{self.form}} ({mean:{self.form}})"


def accuracy(scores: torch.Tensor, labels: torch.Tensor, first: int) -> float:
    found = scores.topk(first, dim=1).indices == labels[:, None]
    return 100.0 * found.any(dim=1).float().mean().item()


def meters() -> list[Meter]:
    forms = [
        ("Time", "6.3f"),
        ("Data", "6.3f"),
        ("Loss", ".4e"),
        ("Acc@1", "6.2f"),
        ("Acc@5", "6.2f"),
    ]
    return [Meter(name, form) for name, form in forms]


def line(prefix: str, batch: int, of: int, shown: list[Meter]) -> str:
    digits = len(str(of))
    return "\t".join([f"{prefix}[{batch:{digits}d}/{of}]", *map(str, shown)])


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--lr", type=float, default=0.1)
    arguments.add_argument("--print-freq", type=int, default=5)
    arguments.add_argument("--pace", type=float, default=0.05)
    asked = arguments.parse_args()

    training, held_out = loaders(960, 32, asked.pace)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), asked.lr, momentum=0.9)
    truth, clock = Truth(), Clock()
    batches = 0
    for epoch in range(asked.epochs):
        taken, data, losses, top1, top5 = shown = meters()
        of = len(training)
        clock.epoch_began()
        end = time.time()
        for batch, (points, labels) in enumerate(training, 1):
            data.add(time.time() - end)
            scores = model(points)
            loss = F.cross_entropy(scores, labels)
            losses.add(loss.item(), len(points))
            top1.add(accuracy(scores, labels, 1), len(points))
            top5.add(accuracy(scores, labels, 5), len(points))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            taken.add(time.time() - end)
            end = time.time()
            batches += 1
            seconds = clock.batch_ended()
            if (batch - 1) % asked.print_freq == 0:
                facts = {"step": batch, "of": of, "epoch": epoch, "global_step": batches}
                facts |= {"batch_seconds": clock.lately(), "batch_seconds_printed": seconds}
                truth.loss("train", "Loss", losses.value, "step", **facts)
                print(line(f"Epoch: [{epoch}]", batch, of, shown))

        taken, data, losses, top1, top5 = shown = meters()
        of = len(held_out)
        end = time.time()
        with torch.no_grad():
            for batch, (points, labels) in enumerate(held_out, 1):
                data.add(time.time() - end)
                scores = model(points)
                losses.add(F.cross_entropy(scores, labels).item(), len(points))
                top1.add(accuracy(scores, labels, 1), len(points))
                top5.add(accuracy(scores, labels, 5), len(points))
                taken.add(time.time() - end)
                end = time.time()
                if (batch - 1) % asked.print_freq == 0:
                    # For a pass over held-out data, the truth is the mean so far.
                    mean = losses.total / losses.weight
                    truth.loss("validation", "Loss", mean, "epoch_so_far", after_epoch=epoch)
                    print(line("Test: ", batch, of, [taken, losses, top1, top5]))
        print(f" *   Acc@1 {top1.total / top1.weight:.3f} Acc@5 {top5.total / top5.weight:.3f}")


if __name__ == "__main__":
    main()
