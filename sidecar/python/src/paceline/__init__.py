"""Reports the loss and batch latency of a training loop to a Paceline sidecar.

A failure here never affects the training: nothing raises and nothing waits. Without a sidecar
nothing is printed.
"""

from __future__ import annotations

import importlib
from typing import Any

from ._loops import Batch, Track, batch, track
from ._reporting import Mean, Number, flush, report, stats
from ._sender import Stats

__all__ = [
    "Batch",
    "Mean",
    "Number",
    "Stats",
    "Track",
    "batch",
    "flush",
    "report",
    "stats",
    "track",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The callbacks import their frameworks, so they are loaded only on demand.
    if name in ("huggingface", "keras", "lightning"):
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
