"""Trains a variational autoencoder with PyTorch and prints as the classic example does."""

import argparse

import torch
import torch.nn.functional as F

from torch_data import loaders
from truth import Clock, Truth


class Vae(torch.nn.Module):
    def __init__(self, features: int = 64, hidden: int = 32, code: int = 4) -> None:
        super().__init__()
        self.enter = torch.nn.Linear(features, hidden)
        self.mean = torch.nn.Linear(hidden, code)
        self.log_variance = torch.nn.Linear(hidden, code)
        self.leave = torch.nn.Sequential(
            torch.nn.Linear(code, hidden), torch.nn.ReLU(), torch.nn.Linear(hidden, features)
        )

    def loss(self, points: torch.Tensor) -> torch.Tensor:
        """The loss of the whole batch, as a sum."""
        hidden = F.relu(self.enter(points))
        mean, log_variance = self.mean(hidden), self.log_variance(hidden)
        code = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        error = F.mse_loss(self.leave(code), points, reduction="sum")
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp())
        return error + divergence


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pace", type=float, default=0.02)
    asked = arguments.parse_args()

    torch.manual_seed(7)
    torch.set_num_threads(1)
    training, held_out = loaders(1280, 32, asked.pace)
    of, of_held_out = len(training.dataset), len(held_out.dataset)
    model = Vae()
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    truth, clock = Truth(), Clock()
    batches = 0
    for epoch in range(1, asked.epochs + 1):
        clock.epoch_began()
        of_epoch = 0.0
        for batch, (points, _) in enumerate(training):
            optimizer.zero_grad()
            loss = model.loss(points)
            loss.backward()
            of_epoch += loss.item()
            optimizer.step()
            batches += 1
            clock.batch_ended()
            if batch % 10 == 0:
                samples, each = batch * len(points), loss.item() / len(points)
                percent = 100.0 * batch / len(training)
                facts = {"step": samples, "unit": "sample", "of": of, "epoch": epoch}
                facts |= {"global_step": batches, "batch_seconds": clock.lately()}
                truth.loss("train", "Loss", each, "step", **facts)
                print(f"Train Epoch: {epoch} [{samples}/{of} ({percent:.0f}%)]\tLoss: {each:.6f}")
        truth.loss(
            "train", "Average loss", of_epoch / of, "epoch", epoch=epoch, global_step=batches
        )
        print(f"====> Epoch: {epoch} Average loss: {of_epoch / of:.4f}")

        with torch.no_grad():
            total = sum(model.loss(points).item() for points, _ in held_out)
        truth.loss("validation", "Test set loss", total / of_held_out, "epoch", after_epoch=epoch)
        print(f"====> Test set loss: {total / of_held_out:.4f}")


if __name__ == "__main__":
    main()
