"""Writes down what a training script knows of itself, for a test to compare with what it printed.

It prints nothing. Where TRUTH names no file it does nothing, and the scripts run as ever.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any


def number(value: Any) -> float | str | None:
    """A number as JSON can hold it: what is not finite becomes a word."""
    if value is None:
        return None
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class Clock:
    """Times batches from end to end, so that a batch has the time of its data in it."""

    def __init__(self) -> None:
        self.batches: list[float] = []
        self.told = 0
        self.epoch_began()

    def epoch_began(self) -> None:
        self.began = self.last = time.perf_counter()
        self.batches.clear()
        self.told = 0

    def resume(self) -> None:
        """What happened since the last batch, such as a validation, belongs to no batch."""
        self.last = time.perf_counter()

    def batch_ended(self) -> float:
        now = time.perf_counter()
        self.batches.append(now - self.last)
        self.last = now
        return self.batches[-1]

    def lately(self) -> float:
        """The mean of the batches since it was last asked for."""
        batches = self.batches[self.told :]
        self.told = len(self.batches)
        return sum(batches) / len(batches)

    def mean(self, after: int = 0) -> float:
        """The mean of this epoch's batches, without the first `after`, if there are others."""
        batches = self.batches[after:] or self.batches
        return sum(batches) / len(batches)

    def epoch_so_far(self) -> float:
        return time.perf_counter() - self.began


class Truth:
    """The file of one run: a line for each loss that the run prints, in that order."""

    def __init__(self) -> None:
        path = os.environ.get("TRUTH")
        self.file = open(path, "w", encoding="utf-8", buffering=1) if path else None

    def loss(self, phase: str, name: str, value: Any, mean: str, **facts: Any) -> None:
        """`mean` is what the loss is the mean of; `facts` are those of README.md."""
        if self.file is None:
            return
        row: dict[str, Any] = {"phase": phase, "name": name, "loss": number(value), "mean": mean}
        seconds = {"batch_seconds", "batch_seconds_printed", "at"}
        for key, fact in facts.items():
            if fact is not None:
                row[key] = round(float(fact), 6) if key in seconds else fact
        row.setdefault("at", round(time.time(), 6))
        self.file.write(json.dumps(row) + "\n")
