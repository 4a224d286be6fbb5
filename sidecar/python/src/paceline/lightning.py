"""A callback for Lightning: `Trainer(…, callbacks=[PacelineCallback()])`."""

from __future__ import annotations

import sys
from typing import Any, Optional

# A program uses one of the two packages: prefer the one that is already imported.
if "pytorch_lightning" in sys.modules and "lightning" not in sys.modules:
    from pytorch_lightning.callbacks import Callback
else:
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

from ._clock import Clock
from ._names import TEST, VALIDATION, first
from ._reporting import report
from ._safe import never_raises


class PacelineCallback(Callback):
    """Reports each batch with the loss that `training_step` returned, and each validation.

    `val_loss` and `test_loss` name these losses as they are logged, if their names are unusual.
    """

    def __init__(self, val_loss: Optional[str] = None, test_loss: Optional[str] = None) -> None:
        self._validation = (val_loss,) if val_loss else VALIDATION
        self._test = (test_loss,) if test_loss else TEST
        self._clock = Clock()
        self._total_steps: Optional[int] = None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        # It is infinite for some trainers and missing for others.
        try:
            self._total_steps = int(trainer.estimated_stepping_batches)
        except Exception:
            self._total_steps = None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        self._clock.pause()
        self._clock.begin()

    def on_train_batch_start(
        self, trainer: Any, pl_module: Any, batch: Any, batch_idx: int
    ) -> None:
        self._clock.begin()

    @never_raises
    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        loss = outputs.get("loss") if isinstance(outputs, dict) else outputs
        batches = trainer.accumulate_grad_batches
        # Lightning has divided the loss, unless the module optimizes by itself.
        if loss is not None and batches != 1 and pl_module.automatic_optimization:
            loss = loss * batches
        report(
            loss=loss,
            batch_seconds=self._clock.end(),
            step=trainer.global_step,
            epoch=trainer.current_epoch,
            total_steps=self._total_steps,
        )

    def on_validation_start(self, trainer: Any, pl_module: Any) -> None:
        self._clock.pause()

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        loss = first(trainer.callback_metrics, self._validation)
        if loss is not None and not trainer.sanity_checking:
            report(val_loss=loss, step=trainer.global_step, epoch=trainer.current_epoch)

    def on_test_end(self, trainer: Any, pl_module: Any) -> None:
        loss = first(trainer.callback_metrics, self._test)
        if loss is not None:
            report(test_loss=loss)
