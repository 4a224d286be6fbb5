"""Reports the loss and batch latency of a training loop to a Paceline sidecar, and shows them.

A failure of reporting never affects the training: nothing raises and nothing waits. Without a
sidecar nothing is printed.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from ._loops import Batch, Track, batch, track
from ._reporting import Mean, Number, flush, report, stats
from ._sender import Stats

if TYPE_CHECKING:
    from ._history import History, history
    from ._show import show

__all__ = [
    "Batch",
    "History",
    "Mean",
    "Number",
    "Stats",
    "Track",
    "batch",
    "flush",
    "history",
    "report",
    "show",
    "stats",
    "track",
]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    # The callbacks import their frameworks, so they are loaded only on demand. What shows a job is not
    # needed where it trains.
    if name in ("accelerate", "fastai", "huggingface", "keras", "lightning"):
        return importlib.import_module(f"{__name__}.{name}")
    if name in ("History", "history"):
        return getattr(importlib.import_module(f"{__name__}._history"), name)
    if name == "show":
        return importlib.import_module(f"{__name__}._show").show
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
