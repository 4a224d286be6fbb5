"""Trains a model of made-up words and prints as PyTorch's word language model example does."""

import math
import time

import torch
import torch.nn.functional as F

from truth import Clock, Truth

WORDS, LENGTH, BATCH = 50, 20, 8


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.enter = torch.nn.Embedding(WORDS, 32)
        self.memory = torch.nn.GRU(32, 32, batch_first=True)
        self.leave = torch.nn.Linear(32, WORDS)

    def loss(self, text: torch.Tensor) -> torch.Tensor:
        hidden, _ = self.memory(self.enter(text[:, :-1]))
        return F.cross_entropy(self.leave(hidden).flatten(0, 1), text[:, 1:].flatten())


def batches(count: int, seed: int) -> list[torch.Tensor]:
    """Each word determines the next one, most of the time."""
    generator = torch.Generator().manual_seed(seed)
    found = []
    for _ in range(count):
        text = torch.randint(0, WORDS, (BATCH, LENGTH), generator=generator)
        for at in range(1, LENGTH):
            follows = torch.rand(BATCH, generator=generator) < 0.8
            text[:, at] = torch.where(follows, (text[:, at - 1] * 7 + 3) % WORDS, text[:, at])
        found.append(text)
    return found


def main() -> None:
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model, rate, interval = Model(), 2.0, 10
    training, held_out, test = batches(60, 1), batches(10, 2), batches(10, 3)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    truth, clock = Truth(), Clock()
    done = 0

    def mean(data: list[torch.Tensor]) -> float:
        with torch.no_grad():
            return sum(model.loss(text).item() for text in data) / len(data)

    for epoch in range(1, 3):
        start = began = time.time()
        clock.epoch_began()
        total = 0.0
        for batch, text in enumerate(training):
            time.sleep(0.015)
            optimizer.zero_grad()
            loss = model.loss(text)
            loss.backward()
            optimizer.step()
            total += loss.item()
            done += 1
            clock.batch_ended()
            if batch % interval == 0 and batch > 0:
                # The first interval has one batch more than the divisor.
                total /= interval
                now = time.time()
                milliseconds = (now - start) * 1000 / interval
                facts = {"step": batch, "of": len(training), "epoch": epoch, "global_step": done}
                facts |= {
                    "batch_seconds": clock.lately(),
                    "batch_seconds_printed": milliseconds / 1000,
                }
                truth.loss("train", "loss", total, "interval", **facts)
                print(
                    f"| epoch {epoch:3d} | {batch:5d}/{len(training):5d} batches | lr {rate:02.2f} "
                    f"| ms/batch {milliseconds:5.2f} | loss {total:5.2f} | ppl {math.exp(total):8.2f}"
                )
                total, start = 0.0, now
        loss = mean(held_out)
        truth.loss("validation", "valid loss", loss, "epoch", epoch=epoch, global_step=done)
        print("-" * 89)
        print(
            f"| end of epoch {epoch:3d} | time: {time.time() - began:5.2f}s "
            f"| valid loss {loss:5.2f} | valid ppl {math.exp(loss):8.2f}"
        )
        print("-" * 89)
    loss = mean(test)
    truth.loss("test", "test loss", loss, "epoch", global_step=done)
    print("=" * 89)
    print(f"| End of training | test loss {loss:5.2f} | test ppl {math.exp(loss):8.2f}")
    print("=" * 89)


if __name__ == "__main__":
    main()
