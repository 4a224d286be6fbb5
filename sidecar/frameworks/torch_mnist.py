"""Trains a classifier with PyTorch and prints as the classic MNIST example does."""

import argparse

import torch
import torch.nn.functional as F

from torch_data import classifier, loaders
from truth import Clock, Truth


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--batch-size", type=int, default=32)
    arguments.add_argument("--lr", type=float, default=0.1)
    arguments.add_argument("--log-interval", type=int, default=10)
    arguments.add_argument("--pace", type=float, default=0.02)
    asked = arguments.parse_args()

    training, held_out = loaders(1920, asked.batch_size, asked.pace)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), asked.lr)
    truth, clock = Truth(), Clock()
    batches = 0
    for epoch in range(1, asked.epochs + 1):
        clock.epoch_began()
        model.train()
        for batch, (points, labels) in enumerate(training):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            batches += 1
            clock.batch_ended()
            if batch % asked.log_interval == 0:
                samples, of = batch * len(points), len(training.dataset)
                percent = 100.0 * batch / len(training)
                facts = {"step": samples, "unit": "sample", "of": of, "epoch": epoch}
                facts |= {"global_step": batches, "batch_seconds": clock.lately()}
                truth.loss("train", "Loss", loss.item(), "step", **facts)
                print(
                    f"Train Epoch: {epoch} [{samples}/{of} ({percent:.0f}%)]\tLoss: {loss.item():.6f}"
                )

        model.eval()
        total, right = 0.0, 0
        with torch.no_grad():
            for points, labels in held_out:
                scores = model(points)
                total += F.cross_entropy(scores, labels, reduction="sum").item()
                right += (scores.argmax(dim=1) == labels).sum().item()
        of = len(held_out.dataset)
        truth.loss("validation", "Average loss", total / of, "epoch", after_epoch=epoch)
        percent = 100.0 * right / of
        print(
            f"\nTest set: Average loss: {total / of:.4f}, Accuracy: {right}/{of} ({percent:.0f}%)\n"
        )


if __name__ == "__main__":
    main()
