"""Boosts trees with XGBoost, and evaluates training and held-out data."""

import numpy as np
import xgboost

from truth import Clock, Truth


class Recorder(xgboost.callback.TrainingCallback):
    def __init__(self) -> None:
        super().__init__()
        self.truth, self.clock = Truth(), Clock()

    def after_iteration(self, model, epoch, evals_log):
        facts = {"step": epoch, "global_step": epoch + 1}
        seconds = self.clock.batch_ended()
        for name, phase, mean in [("train", "train", "step"), ("eval", "validation", "epoch")]:
            loss = evals_log[name]["logloss"][-1]
            of_training = {"batch_seconds": seconds} if phase == "train" else {}
            self.truth.loss(phase, f"{name}-logloss", loss, mean, **facts, **of_training)
        return False


def data(seed: int) -> xgboost.DMatrix:
    generator = np.random.default_rng(seed)
    points = generator.normal(size=(2000, 20))
    noise = generator.normal(scale=0.5, size=2000)
    return xgboost.DMatrix(points, label=points[:, 0] * points[:, 1] + noise > 0)


def main() -> None:
    training, held_out = data(0), data(1)
    xgboost.train(
        {
            "objective": "binary:logistic",
            "eval_metric": ["logloss", "auc"],
            "max_depth": 3,
            "nthread": 1,
        },
        training,
        num_boost_round=12,
        evals=[(training, "train"), (held_out, "eval")],
        callbacks=[Recorder()],
    )


if __name__ == "__main__":
    main()
