"""A callback for Keras 3: `model.fit(…, callbacks=[PacelineCallback()])`."""

from __future__ import annotations

from typing import Any, Optional

import keras

from ._clock import Clock
from ._reporting import report
from ._safe import never_raises

Logs = Optional[dict[str, Any]]


class PacelineCallback(keras.callbacks.Callback):
    """Reports each batch, and the validation of each epoch.

    Keras gives the mean loss of the epoch so far, and the reports are marked accordingly. Steps
    continue over several fits.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clock = Clock()
        self._step = 0
        self._epoch = 0
        # The last step of this epoch, and of all epochs.
        self._epoch_ends: Optional[int] = None
        self._total_steps: Optional[int] = None
        # The batches that Keras runs between two calls.
        self._per_call = 1
        self._fitting = False

    @never_raises
    def on_train_begin(self, logs: Logs = None) -> None:
        self._fitting = True
        # Read only here: with JAX, `model` copies the weights between batches.
        self._per_call = int(getattr(self.model, "steps_per_execution", 1))

    def on_train_end(self, logs: Logs = None) -> None:
        self._fitting = False

    @never_raises
    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        # Counted from 1, as Keras prints it.
        self._epoch = epoch + 1
        self._clock.pause()
        self._clock.begin()
        self._epoch_ends = self._total_steps = None
        params = self.params or {}
        steps, epochs = params.get("steps"), params.get("epochs")
        if steps and epochs and epoch < epochs:
            # A fit may follow another, or begin at a later epoch: add what is left to what is done.
            self._epoch_ends = self._step + steps
            self._total_steps = self._step + steps * (epochs - epoch)

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._clock.begin()

    @never_raises
    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        batches = self._per_call
        if self._epoch_ends is not None:
            # The last call of an epoch may have fewer.
            batches = max(1, min(batches, self._epoch_ends - self._step))
        self._step += batches
        seconds = self._clock.end()
        report(
            loss=(logs or {}).get("loss"),
            mean="epoch_so_far",
            batch_seconds=None if seconds is None else seconds / batches,
            step=self._step,
            epoch=self._epoch,
            total_steps=self._total_steps,
        )

    def on_epoch_end(self, epoch: int, logs: Logs = None) -> None:
        loss = (logs or {}).get("val_loss")
        if loss is not None:
            report(val_loss=loss, step=self._step, epoch=self._epoch)

    def on_test_begin(self, logs: Logs = None) -> None:
        self._clock.pause()

    def on_test_end(self, logs: Logs = None) -> None:
        loss = (logs or {}).get("loss")
        if not self._fitting and loss is not None:
            report(test_loss=loss)
