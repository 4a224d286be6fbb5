"""Trains a tiny language model, initialised at random, with the Hugging Face trainer."""

import argparse
import os
import tempfile
import time

# Never download anything.
os.environ["HF_HUB_OFFLINE"] = "1"

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import ProgressCallback

from truth import Clock, Truth

WORDS, LENGTH = 64, 16


class Words(Dataset):
    """Each word determines the next one. Reading a text takes `pace` seconds."""

    def __init__(self, count: int, seed: int, pace: float = 0.0) -> None:
        first = torch.randint(0, WORDS, (count, 1), generator=torch.Generator().manual_seed(seed))
        self.texts = (first + 5 * torch.arange(LENGTH)) % WORDS
        self.pace = pace

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, at: int) -> dict:
        time.sleep(self.pace)
        return {"input_ids": self.texts[at], "labels": self.texts[at]}


class Recorder(TrainerCallback):
    def __init__(self) -> None:
        self.truth, self.clock = Truth(), Clock()
        # The callback that draws the bar, if there is one.
        self.progress = None

    def on_epoch_begin(self, args, state, control, **kwargs):
        self.clock.resume()

    def on_step_end(self, args, state, control, **kwargs):
        self.clock.batch_ended()

    def on_evaluate(self, args, state, control, **kwargs):
        self.clock.resume()

    def on_log(self, args, state, control, logs=None, **kwargs):
        facts = {"epoch": logs["epoch"], "global_step": state.global_step}
        if "loss" in logs:
            facts["batch_seconds"] = self.clock.lately()
            if self.progress and (rate := self.progress.training_bar.format_dict["rate"]):
                facts["batch_seconds_printed"] = 1 / rate
            self.truth.loss("train", "loss", logs["loss"], "interval", **facts)
        elif "eval_loss" in logs:
            self.truth.loss("validation", "eval_loss", logs["eval_loss"], "epoch", **facts)
        elif "train_loss" in logs:
            facts["batch_seconds"] = sum(self.clock.batches) / len(self.clock.batches)
            facts["batch_seconds_printed"] = 1 / logs["train_steps_per_second"]
            self.truth.loss("train", "train_loss", logs["train_loss"], "run", **facts)


def main(recorder: "Recorder | None" = None) -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--disable-tqdm", action="store_true")
    arguments.add_argument("--bar-unseen", action="store_true", help="stderr is not kept")
    arguments.add_argument("--report-to", default="none")
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pace", type=float, default=0.04)
    asked = arguments.parse_args()

    torch.manual_seed(7)
    torch.set_num_threads(1)
    model = GPT2LMHeadModel(
        GPT2Config(
            vocab_size=WORDS,
            n_positions=LENGTH,
            n_embd=32,
            n_layer=1,
            n_head=2,
            bos_token_id=0,
            eos_token_id=0,
        )
    )
    with tempfile.TemporaryDirectory() as folder:
        recorder = recorder or Recorder()
        trainer = Trainer(
            model,
            TrainingArguments(
                folder,
                num_train_epochs=asked.epochs,
                per_device_train_batch_size=8,
                per_device_eval_batch_size=8,
                learning_rate=5e-3,
                logging_steps=4,
                eval_strategy="epoch",
                save_strategy="no",
                report_to=asked.report_to,
                use_cpu=True,
                seed=7,
                disable_tqdm=asked.disable_tqdm,
                dataloader_pin_memory=False,
            ),
            train_dataset=Words(96, 1, asked.pace / 8),
            eval_dataset=Words(24, 2),
            callbacks=[recorder],
        )
        for callback in trainer.callback_handler.callbacks:
            if isinstance(callback, ProgressCallback) and not asked.bar_unseen:
                recorder.progress = callback
        trainer.train()


if __name__ == "__main__":
    main()
