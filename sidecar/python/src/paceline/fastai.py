"""A callback for fastai: `learn.fit(…, cbs=PacelineCallback())`."""

from __future__ import annotations

from typing import Any

from fastai.callback.core import Callback

from ._clock import Clock
from ._reporting import report
from ._safe import never_raises


class PacelineCallback(Callback):
    """Reports each batch with its loss, and each validation.

    Steps continue over several fits, such as those of `fine_tune`. The search for a learning rate
    and predictions report nothing.
    """

    # After the recorder, which has the mean of a validation.
    order = 70
    remove_on_fetch = True
    learn: Any

    def __init__(self) -> None:
        super().__init__()
        self._clock = Clock()
        # The steps of the fits before, and of all so far.
        self._before = self._done = 0
        self._fitting = False
        self._cancelled = False

    @never_raises
    def before_fit(self) -> None:
        self.run = not hasattr(self.learn, "lr_finder") and not hasattr(self.learn, "gather_preds")
        self._before = self._done
        # A validation alone begins like a fit.
        self._fitting = False

    @never_raises
    def after_fit(self) -> None:
        self._fitting = False

    @never_raises
    def before_train(self) -> None:
        self._fitting = True
        self._clock.pause()
        self._clock.begin()

    @never_raises
    def before_batch(self) -> None:
        self._cancelled = False
        if self.learn.training:
            self._clock.begin()

    @never_raises
    def after_cancel_batch(self) -> None:
        # Its loss is that of the batch before.
        self._cancelled = True

    @never_raises
    def after_batch(self) -> None:
        learn = self.learn
        if not learn.training or not self._fitting:
            return
        batches = len(learn.dls.train)
        self._done = self._before + learn.epoch * batches + learn.iter + 1
        report(
            loss=None if self._cancelled or not len(learn.yb) else learn.loss,
            batch_seconds=self._clock.end(),
            step=self._done,
            epoch=learn.epoch,
            total_steps=self._before + learn.n_epoch * batches,
        )

    @never_raises
    def before_validate(self) -> None:
        self._clock.pause()

    @never_raises
    def after_validate(self) -> None:
        loss = self.learn.recorder.loss.value
        if loss is None:
            return
        if self._fitting:
            report(val_loss=loss, step=self._done, epoch=self.learn.epoch)
        else:
            # `learn.validate()` after the training.
            report(test_loss=loss)
