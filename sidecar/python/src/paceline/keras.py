"""A callback for Keras 3: `model.fit(…, callbacks=[PacelineCallback()])`."""

from __future__ import annotations

from typing import Any, Optional

import keras

from ._clock import Clock
from ._reporting import report

Logs = Optional[dict[str, Any]]


class PacelineCallback(keras.callbacks.Callback):
    """Reports each batch, and the validation of each epoch.

    Keras gives the mean loss of the epoch so far, and the reports are marked accordingly.
    """

    def __init__(self) -> None:
        super().__init__()
        self._clock = Clock()
        self._step = 0
        self._epoch = 0
        self._fitting = False

    def on_train_begin(self, logs: Logs = None) -> None:
        self._fitting = True

    def on_train_end(self, logs: Logs = None) -> None:
        self._fitting = False

    def on_epoch_begin(self, epoch: int, logs: Logs = None) -> None:
        # Counted from 1, as Keras prints it.
        self._epoch = epoch + 1
        self._clock.pause()
        self._clock.begin()

    def on_train_batch_begin(self, batch: int, logs: Logs = None) -> None:
        self._clock.begin()

    def on_train_batch_end(self, batch: int, logs: Logs = None) -> None:
        self._step += 1
        report(
            loss=(logs or {}).get("loss"),
            mean="epoch_so_far",
            batch_seconds=self._clock.end(),
            step=self._step,
            epoch=self._epoch,
            total_steps=self._total_steps(),
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

    def _total_steps(self) -> Optional[int]:
        params = self.params or {}
        steps, epochs = params.get("steps"), params.get("epochs")
        return steps * epochs if steps and epochs else None
