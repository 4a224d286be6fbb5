"""Trains a classifier with Lightning's `Trainer`."""

import argparse
import os

import lightning
import torch
import torch.nn.functional as F
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.loggers import CSVLogger

from torch_data import classifier, loaders
from truth import Clock, Truth

EVERY = 3


class Classifier(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.layers = classifier()

    def training_step(self, batch, index):
        points, labels = batch
        loss = F.cross_entropy(self.layers(points), labels)
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, index):
        points, labels = batch
        self.log("val_loss", F.cross_entropy(self.layers(points), labels), prog_bar=True)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)


class Recorder(Callback):
    def __init__(self, output: str) -> None:
        self.truth, self.clock, self.output = Truth(), Clock(), output
        self.epochs = 0

    def on_train_epoch_start(self, trainer, module):
        self.clock.epoch_began()

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        self.clock.batch_ended()
        done = trainer.global_step
        facts = {"epoch": trainer.current_epoch, "global_step": done}
        if self.output == "bar":
            facts |= {"step": index + 1, "of": trainer.num_training_batches}
            # Lightning moves the bar's counter itself, so the rate is the mean of the epoch so far.
            shown = trainer.progress_bar_callback.train_progress_bar.format_dict
            facts["batch_seconds_printed"] = shown["elapsed"] / shown["n"]
        elif done % EVERY == 0:
            facts["step"] = done - 1
        else:
            return
        facts["batch_seconds"] = self.clock.lately()
        self.truth.loss("train", "train_loss", outputs["loss"].item(), "step", **facts)

    def on_validation_end(self, trainer, module):
        if trainer.sanity_checking:
            return
        facts = {"epoch": trainer.current_epoch, "global_step": trainer.global_step}
        if self.output == "csv":
            facts["step"] = trainer.global_step - 1
        loss = trainer.callback_metrics["val_loss"].item()
        self.truth.loss("validation", "val_loss", loss, "epoch", **facts)


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--output", choices=["bar", "csv"], default="bar")
    arguments.add_argument("--pace", type=float, default=0.05)
    asked = arguments.parse_args()

    folder = os.environ.get("OUTPUT", ".")
    lightning.seed_everything(7)
    training, held_out = loaders(384, 32, asked.pace)
    callbacks = [Recorder(asked.output)]
    if asked.output == "bar":
        callbacks.insert(0, TQDMProgressBar())
    trainer = lightning.Trainer(
        max_epochs=2,
        accelerator="cpu",
        logger=CSVLogger(folder, name="", version="") if asked.output == "csv" else False,
        callbacks=callbacks,
        enable_progress_bar=asked.output == "bar",
        enable_checkpointing=False,
        log_every_n_steps=EVERY,
    )
    trainer.fit(Classifier(), training, held_out)


if __name__ == "__main__":
    main()
