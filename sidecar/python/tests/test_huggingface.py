"""The callback with the real Hugging Face trainer."""

from __future__ import annotations

import json
import unittest

from stub import Stub, needs, run

PROGRAM = """
import json, tempfile, torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments
from paceline.huggingface import PacelineCallback

torch.manual_seed(7)
model = GPT2LMHeadModel(GPT2Config(
    vocab_size=16, n_positions=8, n_embd=8, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0))
data = [{"input_ids": text, "labels": text} for text in torch.randint(0, 16, (24, 8))]
with tempfile.TemporaryDirectory() as folder:
    trainer = Trainer(
        model,
        TrainingArguments(
            folder, num_train_epochs=2, per_device_train_batch_size=2, logging_steps=2,
            gradient_accumulation_steps=2, eval_strategy="epoch", save_strategy="no",
            report_to="none", use_cpu=True, disable_tqdm=True, dataloader_pin_memory=False),
        train_dataset=data, eval_dataset=data[:4], callbacks=[PacelineCallback()])
    trainer.train()
print(json.dumps(trainer.state.log_history))
"""


@needs("transformers", "accelerate", "torch")
class HuggingFace(unittest.TestCase):
    def test_losses_and_times_of_the_trainer_arrive(self) -> None:
        with Stub() as stub:
            done = run(PROGRAM, stub.address, HF_HUB_OFFLINE="1")
            self.assertEqual(done.returncode, 0, done.stderr)
            history = json.loads(done.stdout.splitlines()[-1])

        def logged(key: str) -> list[tuple[float, float]]:
            return [(log["step"], log[key]) for log in history if key in log]

        def sent(key: str) -> list[tuple[float, float]]:
            return [(report["step"], report[key]) for report in stub.reports if key in report]

        self.assertEqual(sent("loss"), logged("loss"))
        self.assertEqual(sent("val_loss"), logged("eval_loss"))
        self.assertEqual(
            {report.get("mean") for report in stub.reports if "loss" in report}, {"interval"}
        )
        # A step of the optimizer is two batches here.
        steps = [report for report in stub.reports if "batch_seconds" in report]
        self.assertEqual([report["step"] for report in steps], list(range(1, 13)))
        self.assertEqual({report["total_steps"] for report in steps}, {12})


if __name__ == "__main__":
    unittest.main()
