"""Trains a small classifier with Keras's `fit`."""

import argparse
import os
import time

import keras
import numpy as np
import tensorflow as tf

from truth import Clock, Truth

SAMPLES, FEATURES, BATCH = 192, 16, 16


class Watch(keras.callbacks.Callback):
    """Times batches. It runs before the bar, so that the times do not include drawing."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = Clock()

    def on_epoch_begin(self, epoch, logs=None):
        self.clock.epoch_began()

    def on_train_batch_end(self, batch, logs=None):
        self.clock.batch_ended()


class Recorder(keras.callbacks.Callback):
    """Records the losses of the chosen output. It runs after the bar."""

    def __init__(
        self, output: str, every: int, watch: Watch, bar: keras.callbacks.ProgbarLogger
    ) -> None:
        super().__init__()
        self.truth, self.clock = Truth(), watch.clock
        self.output, self.every, self.bar = output, every, bar
        self.epoch = self.batches = self.recorded = 0
        self.drawn = None

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        self.batches += 1
        facts = {"global_step": self.batches}
        if self.output == "bar":
            # The bar skips frames that come too soon after the last one.
            before, self.drawn = self.drawn, self.bar.progbar._last_update
            if self.drawn == before:
                return
            # Keras excludes the first batch from its mean once there is another one.
            facts["batch_seconds_printed"] = self.clock.mean(after=1)
            facts |= {"step": batch + 1, "of": self.params["steps"], "epoch": self.epoch + 1}
            self.recorded = self.batches
        elif self.output == "tensorboard" and self.batches % self.every == 0:
            facts["step"] = self.batches
        else:
            return
        facts["batch_seconds"] = self.clock.lately()
        name = "batch_loss" if self.output == "tensorboard" else "loss"
        self.truth.loss("train", name, logs["loss"], "epoch_so_far", **facts)

    def on_epoch_end(self, epoch, logs=None):
        facts = {"epoch": epoch if self.output in ("csv", "tensorboard") else epoch + 1}
        facts["global_step"] = self.batches
        named = "epoch_loss" if self.output == "tensorboard" else "loss"
        of_validation = named if self.output == "tensorboard" else "val_loss"
        if self.output == "bar":
            # The last frame includes the validation. It is the only one of this batch if the
            # previous frame was skipped.
            if self.recorded != self.batches:
                steps = self.params["steps"]
                self.truth.loss("train", named, logs["loss"], "epoch", step=steps, of=steps, **facts)
        else:
            of_epoch = {"batch_seconds": self.clock.mean()}
            if self.output == "lines":
                # Keras divides the time of the epoch, including the validation, by the steps.
                steps = self.params["steps"]
                of_epoch |= {"step": steps, "of": steps}
                of_epoch["batch_seconds_printed"] = self.clock.epoch_so_far() / steps
            self.truth.loss("train", named, logs["loss"], "epoch", **facts, **of_epoch)
        self.truth.loss("validation", of_validation, logs["val_loss"], "epoch", **facts)


def data(seed: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(SAMPLES, FEATURES)).astype("float32")
    return points, (points[:, 0] + points[:, 1] > 0).astype("int32")


def slowly(points: np.ndarray, labels: np.ndarray, pace: float) -> tf.data.Dataset:
    """Batches that take `pace` seconds each, as from a slow disk."""

    def batches():
        for at in range(0, SAMPLES, BATCH):
            time.sleep(pace)
            yield points[at : at + BATCH], labels[at : at + BATCH]

    signature = (tf.TensorSpec((BATCH, FEATURES)), tf.TensorSpec((BATCH,), tf.int32))
    dataset = tf.data.Dataset.from_generator(batches, output_signature=signature)
    return dataset.apply(tf.data.experimental.assert_cardinality(SAMPLES // BATCH))


def main() -> None:
    arguments = argparse.ArgumentParser()
    arguments.add_argument(
        "--output", choices=["bar", "lines", "csv", "tensorboard"], default="bar"
    )
    arguments.add_argument("--epochs", type=int, default=2)
    arguments.add_argument("--pace", type=float, default=0.06)
    arguments.add_argument("--every", type=int, default=4, help="batches between TensorBoard's")
    arguments.add_argument("--evaluate", action="store_true")
    asked = arguments.parse_args()
    folder = os.environ.get("OUTPUT", ".")

    keras.utils.set_random_seed(7)
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    # Keras would add a bar itself. It is created here so that the recorder can see its frames.
    bar, watch = keras.callbacks.ProgbarLogger(), Watch()
    recorder = Recorder(asked.output, asked.every, watch, bar)
    callbacks = [watch, bar, recorder]
    if asked.output == "csv":
        callbacks.append(keras.callbacks.CSVLogger(f"{folder}/log.csv"))
    if asked.output == "tensorboard":
        callbacks.append(
            keras.callbacks.TensorBoard(folder, write_graph=False, update_freq=asked.every)
        )
    verbose = {"bar": 1, "lines": 2}.get(asked.output, 0)
    training, validation, test = slowly(*data(0), asked.pace), data(1), data(2)
    model.fit(
        training,
        epochs=asked.epochs,
        validation_data=validation,
        callbacks=callbacks,
        verbose=verbose,
        shuffle=False,
    )
    if asked.evaluate:
        loss, accuracy = model.evaluate(*test, verbose=verbose)
        recorder.truth.loss("test", "loss", loss, "epoch")
        model.predict(test[0], verbose=verbose)
        print(f"accuracy on the test data: {accuracy:.3f}")


if __name__ == "__main__":
    main()
