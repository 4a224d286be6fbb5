"""Measures the time of batches, for callbacks."""

from __future__ import annotations

import time
from typing import Optional


class Clock:
    """Measures from the end of a batch to the end of the next, including reading the data."""

    def __init__(self) -> None:
        self._last: Optional[float] = None

    def begin(self) -> None:
        """A batch begins. This matters only after a pause."""
        if self._last is None:
            self._last = time.perf_counter()

    def end(self) -> Optional[float]:
        """A batch ends; returns its seconds."""
        now, last = time.perf_counter(), self._last
        self._last = now
        return None if last is None else now - last

    def pause(self) -> None:
        """Something outside of batches begins, such as a validation."""
        self._last = None
