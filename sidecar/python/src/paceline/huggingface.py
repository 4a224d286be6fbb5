"""A callback for the Hugging Face trainer: `Trainer(…, callbacks=[PacelineCallback()])`."""

from __future__ import annotations

from typing import Any, Optional

from transformers import TrainerCallback

from ._clock import Clock
from ._reporting import report


class PacelineCallback(TrainerCallback):
    """Reports the time of each step, and the losses when the trainer logs them.

    The trainer's loss is the mean of the steps since its last log. A step is one of the
    optimizer.
    """

    def __init__(self) -> None:
        self._clock = Clock()

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.pause()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.begin()

    def on_step_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.begin()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        report(
            batch_seconds=self._clock.end(),
            step=state.global_step,
            epoch=state.epoch,
            total_steps=state.max_steps if state.max_steps > 0 else None,
        )

    def on_evaluate(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.pause()

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._clock.pause()

    def on_log(
        self,
        args: Any,
        state: Any,
        control: Any,
        logs: Optional[dict[str, Any]] = None,
        **kwargs: Any,
    ) -> None:
        # All ranks get the same loss, so only one reports it.
        if not logs or not state.is_world_process_zero:
            return
        step, epoch = state.global_step, state.epoch
        if "loss" in logs:
            report(loss=logs["loss"], mean="interval", step=step, epoch=epoch)
        # With several data sets there is one loss for each.
        held_out = [key for key in logs if key.startswith("eval_") and key.endswith("loss")]
        if held_out:
            report(val_loss=logs[min(held_out, key=len)], step=step, epoch=epoch)
        if "test_loss" in logs:
            report(test_loss=logs["test_loss"], step=step, epoch=epoch)
