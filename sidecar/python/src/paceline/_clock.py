"""The time of a batch, for callbacks."""

from __future__ import annotations

import time
from typing import Optional


class Clock:
    """Measures from the end of a batch to the end of the next, so that data is counted in."""

    def __init__(self) -> None:
        self._last: Optional[float] = None

    def begin(self) -> None:
        """A batch begins. That only matters if what came before it belongs to no batch."""
        if self._last is None:
            self._last = time.perf_counter()

    def end(self) -> Optional[float]:
        """Seconds of the batch that ends."""
        now, last = time.perf_counter(), self._last
        self._last = now
        return None if last is None else now - last

    def pause(self) -> None:
        """Something that belongs to no batch begins, such as a validation."""
        self._last = None
