"""Reports from hand-written training loops."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sized
from types import TracebackType
from typing import Any, Generic, Optional, TypeVar, cast

from ._reporting import Number, report

Item = TypeVar("Item")

_step = 0


def _next_step(step: Optional[int]) -> int:
    """Counts steps over the whole process, continuing from the last reported one."""
    global _step
    _step = _step + 1 if step is None else step
    return _step


class Batch:
    """One timed batch, created by `batch`."""

    def __init__(self, step: Optional[int], epoch: Optional[float]) -> None:
        self._step, self._epoch = step, epoch
        self._loss: Optional[Number] = None
        self._began = 0.0

    def loss(self, value: Number) -> None:
        """Sets the loss of this batch."""
        self._loss = value

    def __enter__(self) -> Batch:
        self._began = time.perf_counter()
        return self

    def __exit__(
        self,
        kind: Optional[type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        # A failed batch is not reported, and its error is passed on.
        if kind is None:
            seconds = time.perf_counter() - self._began
            step = _next_step(self._step)
            report(loss=self._loss, batch_seconds=seconds, step=step, epoch=self._epoch)


def batch(*, step: Optional[int] = None, epoch: Optional[float] = None) -> Batch:
    """Times the body of `with paceline.batch() as b:` and reports it.

    `step` defaults to the one after the last.
    """
    return Batch(step, epoch)


class Track(Generic[Item]):
    """The batches of a loader, created by `track`."""

    def __init__(self, items: Iterable[Item], epoch: Optional[float]) -> None:
        self._items, self._epoch = items, epoch
        self._loss: Optional[Number] = None

    def loss(self, value: Number) -> None:
        """Sets the loss of the current batch."""
        self._loss = value

    def __len__(self) -> int:
        return len(cast(Sized, self._items))

    def __getattr__(self, name: str) -> Any:
        # Loops use attributes of their loader, such as `dataset` and `sampler`.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._items, name)

    def __iter__(self) -> Iterator[Item]:
        began = time.perf_counter()
        for item in self._items:
            self._loss = None
            try:
                yield item
            except GeneratorExit:
                # The loop was left early. The last batch was complete if it has a loss.
                if self._loss is not None:
                    self._report(began)
                raise
            began = self._report(began)

    def _report(self, began: float) -> float:
        now = time.perf_counter()
        step = _next_step(None)
        report(loss=self._loss, batch_seconds=now - began, step=step, epoch=self._epoch)
        return now


def track(items: Iterable[Item], *, epoch: Optional[float] = None) -> Track[Item]:
    """Iterates over a loader and reports the time of each batch, from one to the next.

    Its `loss` method sets the loss of the current batch.
    """
    return Track(items, epoch)
