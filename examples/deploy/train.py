"""A toy training without Paceline's reporter: it fits a small classifier and prints its loss.

    python3 train.py [STEPS]
"""

import math
import random
import signal
import sys

BATCH, RATE, WEIGHTS = 2000, 0.05, (3.0, -2.0)


def sample(noise):
    """A point of the plane, and on which side of a blurred line it lies."""
    x, y = noise.gauss(0, 1), noise.gauss(0, 1)
    return x, y, 1.0 if WEIGHTS[0] * x + WEIGHTS[1] * y + noise.gauss(0, 1) > 0 else 0.0


def train(steps):
    """Logistic regression by stochastic gradient descent."""
    noise = random.Random(1)
    a = b = 0.0
    for step in range(1, steps + 1):
        loss = grad_a = grad_b = 0.0
        for _ in range(BATCH):
            x, y, side = sample(noise)
            guess = 1 / (1 + math.exp(-(a * x + b * y)))
            loss -= math.log(guess if side else 1 - guess)
            grad_a += (guess - side) * x
            grad_b += (guess - side) * y
        a -= RATE * grad_a / BATCH
        b -= RATE * grad_b / BATCH
        if step % 10 == 0:
            print(f"step {step}/{steps} loss {loss / BATCH:.4f}")


# The first process of a container is deaf to signals that it has no handler for.
signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
train(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
