"""The names under which losses are logged, in order of preference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRAINING = (
    "loss",
    "train_loss",
    "train/loss",
    "training_loss",
    "loss/train",
    "step_loss",
    "train/step_loss",
)
VALIDATION = (
    "val_loss",
    "val/loss",
    "valid_loss",
    "validation_loss",
    "validation/loss",
    "loss/val",
    "eval_loss",
    "eval/loss",
)
TEST = ("test_loss", "test/loss", "loss/test")


def first(metrics: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    """The value of the first name that is there, else `None`."""
    return next((metrics[name] for name in names if name in metrics), None)
