"""Boosts trees with LightGBM, and prints every second round."""

import lightgbm
import numpy as np

from truth import Clock, Truth


class Recorder:
    order = 5

    def __init__(self, every: int) -> None:
        self.truth, self.clock, self.every = Truth(), Clock(), every

    def __call__(self, env) -> None:
        self.clock.batch_ended()
        rounds = env.iteration + 1
        if rounds % self.every:
            return
        for data, metric, loss, *_ in env.evaluation_result_list:
            facts = {"step": rounds, "global_step": rounds}
            phase, mean = "validation", "epoch"
            if data == "training":
                phase, mean = "train", "step"
                facts["batch_seconds"] = self.clock.lately()
            self.truth.loss(phase, f"{data}'s {metric}", loss, mean, **facts)


def data(seed: int) -> lightgbm.Dataset:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(2000, 20))
    return lightgbm.Dataset(points, points[:, 0] * points[:, 1] + generator.normal(size=2000))


def main() -> None:
    training, held_out = data(0), data(1)
    lightgbm.train(
        {"objective": "regression", "metric": "l2", "num_leaves": 15, "num_threads": 1},
        training,
        num_boost_round=16,
        valid_sets=[training, held_out],
        valid_names=["training", "valid_0"],
        callbacks=[lightgbm.log_evaluation(2), Recorder(2)],
    )


if __name__ == "__main__":
    main()
