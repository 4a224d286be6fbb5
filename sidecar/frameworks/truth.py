"""Records the true losses of a training script, for tests to compare with its output.

It prints nothing. Without a file name in TRUTH it does nothing.
"""

from __future__ import annotations

import json
import math
import os
import time
from typing import Any


def number(value: Any) -> float | str | None:
    """A number for JSON, which has no NaN and no infinity: they become strings."""
    if value is None:
        return None
    value = float(value)
    if math.isnan(value):
        return "nan"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


class Clock:
    """Times batches from end to end, so that a batch includes the time of its data."""

    def __init__(self) -> None:
        self.batches: list[float] = []
        self.reported = 0
        self.epoch_began()

    def epoch_began(self) -> None:
        self.began = self.last = time.perf_counter()
        self.batches.clear()
        self.reported = 0

    def resume(self) -> None:
        """Excludes the time since the last batch, such as a validation."""
        self.last = time.perf_counter()

    def batch_ended(self) -> float:
        now = time.perf_counter()
        self.batches.append(now - self.last)
        self.last = now
        return self.batches[-1]

    def lately(self) -> float:
        """The mean of the batches since the last call."""
        batches = self.batches[self.reported :]
        self.reported = len(self.batches)
        return sum(batches) / len(batches)

    def mean(self, after: int = 0) -> float:
        """The mean of this epoch's batches, without the first `after`, if there are others."""
        batches = self.batches[after:] or self.batches
        return sum(batches) / len(batches)

    def epoch_so_far(self) -> float:
        return time.perf_counter() - self.began


class Truth:
    """The file of one run: one line for each printed loss, in order."""

    def __init__(self) -> None:
        path = os.environ.get("TRUTH")
        self.file = open(path, "w", encoding="utf-8", buffering=1) if path else None

    def loss(self, phase: str, name: str, value: Any, mean: str, **facts: Any) -> None:
        """`mean`: the steps over which the loss is averaged; `facts`: further keys of README.md."""
        if self.file is None:
            return
        row: dict[str, Any] = {"phase": phase, "name": name, "loss": number(value), "mean": mean}
        seconds = {"batch_seconds", "batch_seconds_printed", "at"}
        for key, fact in facts.items():
            if fact is not None:
                row[key] = round(float(fact), 6) if key in seconds else fact
        row.setdefault("at", round(time.time(), 6))
        self.file.write(json.dumps(row) + "\n")
