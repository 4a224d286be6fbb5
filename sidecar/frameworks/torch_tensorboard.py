"""Trains a classifier with PyTorch and writes TensorBoard's event files."""

import argparse
import os

import torch
import torch.nn.functional as F

from torch_data import classifier, loaders
from truth import Clock, Truth


def writer(kind: str, folder: str):
    if kind == "tensorboardX":
        from tensorboardX import SummaryWriter
    else:
        from torch.utils.tensorboard import SummaryWriter
    return SummaryWriter(folder)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--writer", choices=["torch", "tensorboardX"], default="torch")
    arguments.add_argument("--every", type=int, default=5)
    asked = arguments.parse_args()

    training, held_out = loaders(640, 32, pace=0.02)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    board = writer(asked.writer, os.environ.get("OUTPUT", "."))
    truth, clock = Truth(), Clock()
    batches = 0
    for _epoch in range(2):
        clock.resume()
        for points, labels in training:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(points), labels)
            loss.backward()
            optimizer.step()
            batches += 1
            clock.batch_ended()
            if batches % asked.every == 0:
                facts = {"step": batches, "global_step": batches, "batch_seconds": clock.lately()}
                truth.loss("train", "Loss/train", loss.item(), "step", **facts)
                board.add_scalar("Loss/train", loss.item(), batches)
                board.add_scalar("learning_rate", 0.1, batches)
        with torch.no_grad():
            losses = [F.cross_entropy(model(points), labels) for points, labels in held_out]
        mean = torch.stack(losses).mean()
        truth.loss(
            "validation", "Loss/validation", mean, "epoch", step=batches, global_step=batches
        )
        board.add_scalar("Loss/validation", mean.item(), batches)
    board.close()


if __name__ == "__main__":
    main()
