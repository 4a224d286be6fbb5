"""Checks a fixture of event files with TensorBoard's own reader: it has exactly the true losses.

events.py FOLDER
"""

from __future__ import annotations

import os

# TensorBoard may import TensorFlow, which would fill stderr.
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import json
import sys
from pathlib import Path

from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
from tensorboard.util import tensor_util

from verify import close, rows

# Keras writes the loss of some validations a second time.
COPIES = {"evaluation_loss_vs_iterations"}


def scalars(folder: Path) -> list[tuple]:
    """The phase, tag, step and value of each loss."""
    found = []
    for path in sorted(folder.rglob("events.out.tfevents.*")):
        for event in EventFileLoader(str(path)).Load():
            for value in event.summary.value:
                if "loss" not in value.tag.lower() or value.tag in COPIES:
                    continue
                validation = "validation" in (path.parent.name, value.tag.split("/")[-1])
                number = float(tensor_util.make_ndarray(value.tensor))
                phase = "validation" if validation else "train"
                found.append((phase, value.tag, event.step, number))
    return sorted(found)


def main(folder: Path) -> int:
    within = json.loads((folder / "about.json").read_text())["within"]
    truth = sorted(
        (row["phase"], row["name"], row.get("step", row.get("epoch")), float(row["loss"]))
        for row in rows(folder)
    )
    written = scalars(folder)
    same = len(truth) == len(written) and all(
        one[:3] == true[:3] and close(one[3], true[3], within[true[0]])
        for one, true in zip(written, truth)
    )
    if not same:
        print(f"written {written}\ntrue {truth}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
