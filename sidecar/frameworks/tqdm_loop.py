"""Trains with PyTorch in a plain loop below a tqdm bar that shows the loss."""

import argparse

import torch
import torch.nn.functional as F
from tqdm import tqdm

from torch_data import classifier, loaders
from truth import Clock, Truth


class Watched(tqdm):
    """Remembers the first frame drawn since the last call of `drawn`."""

    frame = None

    def display(self, *arguments, **named):
        if self.frame is None:
            known = self.format_dict
            rate = known["rate"] or (known["elapsed"] and known["n"] / known["elapsed"])
            self.frame = {"batch_seconds_printed": 1 / rate if rate else None}
        return super().display(*arguments, **named)

    def drawn(self) -> "dict | None":
        self.frame, frame = None, self.frame
        return frame


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pace", type=float, default=0.03)
    arguments.add_argument("--lazy", action="store_true", help="draw only when tqdm wants to")
    asked = arguments.parse_args()

    training, held_out = loaders(640, 32, asked.pace)
    model = classifier()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    truth, clock = Truth(), Clock()
    batches = 0
    for epoch in range(1, asked.epochs + 1):
        clock.epoch_began()
        with Watched(training, desc=f"Epoch {epoch}/{asked.epochs}") as bar:
            shown = {}
            bar.drawn()
            for batch, (points, labels) in enumerate(bar, 1):
                # The counter has moved for the previous batch, and was drawn with its loss.
                frame = bar.drawn()
                if frame and shown:
                    frame["batch_seconds"] = clock.lately()
                    truth.loss("train", "loss", **shown, **frame)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(points), labels)
                loss.backward()
                optimizer.step()
                batches += 1
                clock.batch_ended()
                shown = {"value": loss.item(), "mean": "step", "step": batch, "of": len(training)}
                shown |= {"epoch": epoch, "global_step": batches}
                bar.set_postfix(loss=loss.item(), lr=0.1, refresh=not asked.lazy)
                if frame := bar.drawn():
                    frame["batch_seconds"] = clock.lately()
                    truth.loss("train", "loss", **shown, **frame)
                    shown = {}
        # The bar is drawn once more when it is closed.
        if shown:
            frame = {**bar.drawn(), "batch_seconds": clock.lately()}
            truth.loss("train", "loss", **shown, **frame)

        with torch.no_grad(), tqdm(held_out, desc="Validating") as bar:
            total = 0.0
            for batch, (points, labels) in enumerate(bar, 1):
                total += F.cross_entropy(model(points), labels).item()
                bar.set_postfix(loss=total / batch)
        facts = {"after_epoch": epoch, "global_step": batches}
        truth.loss("validation", "loss", total / len(held_out), "epoch", **facts)


if __name__ == "__main__":
    main()
