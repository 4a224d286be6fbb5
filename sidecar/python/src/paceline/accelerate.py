"""A tracker for Accelerate: `Accelerator(log_with=PacelineTracker())`."""

from __future__ import annotations

from typing import Any, Optional

from accelerate.tracking import GeneralTracker

from ._clock import Clock
from ._names import TEST, TRAINING, VALIDATION, first
from ._reporting import Mean, report
from ._safe import never_raises

# The settings that give the number of steps.
TOTALS = ("max_train_steps", "max_steps", "num_training_steps", "total_steps")


class PacelineTracker(GeneralTracker):
    """Reports the losses that `accelerator.log` gets, and the time from one to the next.

    The time is that of a step, if each log has a `step`: several steps share it. `loss`, `val_loss` and
    `test_loss` name these losses as they are logged, if their names are unusual. `mean` says over which
    steps the training loss is averaged, if not over one. Accelerate logs in its main process, so only
    that one reports.
    """

    name = "paceline"
    requires_logging_directory = False

    def __init__(
        self,
        loss: Optional[str] = None,
        val_loss: Optional[str] = None,
        test_loss: Optional[str] = None,
        mean: Mean = "step",
    ) -> None:
        super().__init__()
        self._training = (loss,) if loss else TRAINING
        self._validation = (val_loss,) if val_loss else VALIDATION
        self._test = (test_loss,) if test_loss else TEST
        self._mean = mean
        self._clock = Clock()
        self._step: Optional[int] = None

    @property
    def tracker(self) -> PacelineTracker:
        """Itself: no other object is behind it."""
        return self

    @never_raises
    def store_init_configuration(self, values: dict[str, Any]) -> None:
        """Takes the number of steps from the configuration, if it is there."""
        total = first(values, TOTALS)
        if total is not None and int(total) > 0:
            report(total_steps=int(total))
        self._clock.begin()

    @never_raises
    def log(self, values: dict[str, Any], step: Optional[int] = None, **kwargs: Any) -> None:
        """Reports what of `values` is a loss."""
        epoch = values.get("epoch")
        # Many scripts log once an epoch, with the epoch as the step.
        of_epoch = epoch is not None and step is not None and epoch == step
        step = None if of_epoch or step is None else int(step)
        loss = first(values, self._training)
        if loss is not None:
            report(
                loss=loss,
                mean="epoch" if of_epoch else self._mean,
                batch_seconds=None if of_epoch else self._seconds(step),
                step=step,
                epoch=epoch,
            )
        val_loss, test_loss = first(values, self._validation), first(values, self._test)
        if val_loss is not None or test_loss is not None:
            # What came before was no step.
            self._clock.pause()
            self._clock.begin()
            report(val_loss=val_loss, test_loss=test_loss, step=step, epoch=epoch)

    def _seconds(self, step: Optional[int]) -> Optional[float]:
        """The time of each step since the last log."""
        seconds, last = self._clock.end(), self._step
        self._step = step
        if seconds is None or step is None or last is None:
            return seconds
        # Without a new step there was no batch: a restart, or a second log of the same.
        return seconds / (step - last) if step > last else None
