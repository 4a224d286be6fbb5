"""Checks that regenerated fixtures expect the same losses as those in the repository.

    same.py OLD NEW NAME…

Values and times differ between machines and releases. The phases and steps of the losses must
not differ, except where a bar is drawn by the clock.
"""

from __future__ import annotations

import sys
from pathlib import Path

from verify import rows

FACTS = ("phase", "name", "mean", "step", "unit", "of", "epoch", "after_epoch", "global_step")
# Fixtures whose frames are drawn by the clock.
BY_TIME = {"keras_bar", "tqdm_lazy", "hf_status"}


def shape(folder: Path, by_time: bool) -> list[tuple]:
    found = rows(folder)
    if by_time:
        found = [row for row in found if row["phase"] != "train"]
    return [tuple(row.get(fact) for fact in FACTS) for row in found]


def main(old: Path, new: Path, names: list[str]) -> int:
    differ = [
        name
        for name in names
        if shape(old / name, name in BY_TIME) != shape(new / name, name in BY_TIME)
    ]
    for name in differ:
        print(f"{name}: the losses differ from those in the repository")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:]))
