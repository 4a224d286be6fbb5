"""The callback with the real Keras."""

from __future__ import annotations

import json
import unittest

from stub import Stub, needs, run

PROGRAM = """
import json, keras, numpy as np, paceline
from paceline.keras import PacelineCallback

class Truth(keras.callbacks.Callback):
    losses = []
    def on_train_batch_end(self, batch, logs=None):
        self.losses.append(logs["loss"])

keras.utils.set_random_seed(7)
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.random.default_rng(0).normal(size=(64, 8)).astype("float32")
y = x[:, :1]
history = model.fit(
    x, y, batch_size=16, epochs=2, validation_split=0.25, verbose=0,
    callbacks=[Truth(), paceline.keras.PacelineCallback()],
)
test = model.evaluate(x, y, verbose=0, callbacks=[PacelineCallback()])
print(json.dumps({"losses": Truth.losses, "val": history.history["val_loss"], "test": test}))
"""
# Three fits of two batches an epoch, the second from a later epoch. The last runs all of an epoch at once.
FITS = """
import keras, numpy as np
from paceline.keras import PacelineCallback

model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
x = np.ones((32, 8), "float32")
callback = PacelineCallback()
def fit(**options):
    model.fit(x, x[:, :1], batch_size=16, verbose=0, callbacks=[callback], **options)

fit(epochs=2)
fit(initial_epoch=1, epochs=3)
model.compile("sgd", "mse", steps_per_execution=3)
fit(epochs=2)
"""


@needs("keras", "tensorflow")
class Keras(unittest.TestCase):
    def test_losses_and_times_of_keras_arrive(self) -> None:
        with Stub() as stub:
            done = run(PROGRAM, stub.address, TF_CPP_MIN_LOG_LEVEL="3")
            self.assertEqual(done.returncode, 0, done.stderr)
            truth = json.loads(done.stdout.splitlines()[-1])
        batches = [report for report in stub.reports if "loss" in report]
        self.assertEqual([report["loss"] for report in batches], truth["losses"])
        self.assertEqual([report["step"] for report in batches], [1, 2, 3, 4, 5, 6])
        self.assertEqual([report["epoch"] for report in batches], [1, 1, 1, 2, 2, 2])
        self.assertEqual({report["total_steps"] for report in batches}, {6})
        self.assertEqual({report["mean"] for report in batches}, {"epoch_so_far"})
        self.assertTrue(all(0 < report["batch_seconds"] < 60 for report in batches))
        validations = [report for report in stub.reports if "val_loss" in report]
        self.assertEqual([report["val_loss"] for report in validations], truth["val"])
        self.assertEqual([report["step"] for report in validations], [3, 6])
        tests = [report["test_loss"] for report in stub.reports if "test_loss" in report]
        self.assertEqual(tests, [truth["test"]])

    def test_last_step_of_each_fit_is_the_total(self) -> None:
        with Stub() as stub:
            done = run(FITS, stub.address, TF_CPP_MIN_LOG_LEVEL="3")
            self.assertEqual(done.returncode, 0, done.stderr)
        batches = [report for report in stub.reports if "loss" in report]
        self.assertEqual([report["step"] for report in batches], [1, 2, 3, 4, 5, 6, 7, 8, 10, 12])
        self.assertEqual([report["epoch"] for report in batches], [1, 1, 2, 2, 2, 2, 3, 3, 1, 2])
        totals = [report["total_steps"] for report in batches]
        self.assertEqual(totals, 4 * [4] + 4 * [8] + 2 * [12])


if __name__ == "__main__":
    unittest.main()
