"""Trains a classifier with Flax and logs with absl, as Flax's MNIST example does."""

import time

import jax.numpy as jnp
import numpy as np
import optax
from absl import app, logging
from flax import nnx

from truth import Clock, Truth

BATCH, STEPS = 32, 20


class Classifier(nnx.Module):
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.enter = nnx.Linear(32, 64, rngs=rngs)
        self.leave = nnx.Linear(64, 10, rngs=rngs)

    def __call__(self, points):
        return self.leave(nnx.relu(self.enter(points)))


def loss_and_accuracy(model: Classifier, points, labels):
    scores = model(points)
    loss = optax.softmax_cross_entropy_with_integer_labels(scores, labels).mean()
    return loss, (scores.argmax(axis=-1) == labels).mean()


@nnx.jit
def train_step(model: Classifier, optimizer: nnx.Optimizer, points, labels):
    found, gradients = nnx.value_and_grad(loss_and_accuracy, has_aux=True)(model, points, labels)
    optimizer.update(model, gradients)
    return found


def data(samples: int, seed: int):
    generator = np.random.default_rng(seed)
    centres = np.random.default_rng(1).normal(size=(10, 32))
    labels = generator.integers(0, 10, samples)
    points = centres[labels] + 1.5 * generator.normal(size=(samples, 32))
    return jnp.asarray(points, jnp.float32), jnp.asarray(labels)


def main(_) -> None:
    logging.set_verbosity(logging.INFO)
    points, labels = data(BATCH * STEPS, 2)
    held_out = data(256, 3)
    model = Classifier(nnx.Rngs(7))
    optimizer = nnx.Optimizer(model, optax.sgd(0.1), wrt=nnx.Param)
    truth, clock = Truth(), Clock()
    for epoch in range(1, 5):
        clock.epoch_began()
        losses, accuracies = [], []
        for step in range(STEPS):
            # Simulates slow data.
            time.sleep(0.01)
            part = slice(step * BATCH, (step + 1) * BATCH)
            loss, accuracy = train_step(model, optimizer, points[part], labels[part])
            losses.append(float(loss))
            accuracies.append(float(accuracy))
            clock.batch_ended()
        test_loss, test_accuracy = loss_and_accuracy(model, *held_out)
        facts = {"epoch": epoch, "global_step": epoch * STEPS}
        mean = float(np.mean(losses))
        truth.loss("train", "train_loss", mean, "epoch", **facts, batch_seconds=clock.mean())
        truth.loss("validation", "test_loss", test_loss, "epoch", **facts)
        logging.info(
            "epoch:% 3d, train_loss: %.4f, train_accuracy: %.2f, test_loss: %.4f, test_accuracy: %.2f",
            epoch,
            mean,
            np.mean(accuracies) * 100,
            test_loss,
            test_accuracy * 100,
        )


if __name__ == "__main__":
    app.run(main)
