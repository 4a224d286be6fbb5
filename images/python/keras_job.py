"""Shared by the Keras scripts: TensorFlow's threads, and an end before the last epoch."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager

import keras
import tensorflow as tf

import cli


class Ended(Exception):
    """Leaves `fit` within an epoch, without the validation that would follow."""


class EndEarly(keras.callbacks.Callback):
    """Ends the training after this many steps, or after the batch in which a signal arrives."""

    def __init__(self, args: Namespace, stop: cli.Stop) -> None:
        super().__init__()
        self.args, self.stop = args, stop
        self.done = 0

    def epochs(self, samples: int) -> int:
        """The largest number of epochs: steps take precedence."""
        batches = -(-samples // self.args.batch_size)
        return max(self.args.epochs, -(-(self.args.steps or 0) // batches))

    @contextmanager
    def early(self) -> Iterator[None]:
        """The context in which to call `fit`."""
        try:
            yield
        except Ended:
            # The bar's line has not ended yet.
            print()
        print(f"Ended after step {self.done}.")

    def is_over(self) -> bool:
        return self.stop.requested or self.done == self.args.steps

    def on_train_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        if self.is_over():
            raise Ended

    def on_train_batch_end(self, batch: int, logs: dict | None = None) -> None:
        self.done += 1

    def on_test_batch_begin(self, batch: int, logs: dict | None = None) -> None:
        if self.stop.requested:
            raise Ended

    def on_epoch_end(self, epoch: int, logs: dict | None = None) -> None:
        self.model.stop_training = self.is_over()


def begin(args: Namespace, stop: cli.Stop) -> EndEarly:
    tf.config.threading.set_intra_op_parallelism_threads(args.threads)
    # Operations that ran beside each other would compete for the same CPUs.
    tf.config.threading.set_inter_op_parallelism_threads(1)
    keras.utils.set_random_seed(args.seed)
    return EndEarly(args, stop)
