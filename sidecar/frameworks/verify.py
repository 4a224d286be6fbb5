"""Checks that a fixture is consistent: each true loss is printed, in order.

    verify.py FOLDER…

It uses no grammars: it only searches for numbers, each after the previous one.
"""

from __future__ import annotations

import json
import math
import re
import sys
from pathlib import Path

NUMBER = re.compile(r"nan|-?inf|[-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?")
NAMES = {"phase", "name", "loss", "mean", "at"}


def rows(folder: Path) -> list[dict]:
    lines = (folder / "truth.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def close(printed: float, true: float, within: dict) -> bool:
    if math.isnan(true) or math.isinf(true):
        return str(printed) == str(true)
    # Rounding to the nearest may be off by half a unit, and by the error of the true value itself.
    allowed = within["absolute"] + within["relative"] * abs(true)
    return abs(printed - true) <= allowed * 1.001 + 1e-12


def problems(folder: Path) -> list[str]:
    about = json.loads((folder / "about.json").read_text())
    truth = rows(folder)
    if not truth:
        return ["the truth is empty"]
    if missing := [row for row in truth if NAMES - row.keys()]:
        return [f"keys are missing: {missing[0]}"]
    if about["source"] == "tfevents":
        return []
    text = (folder / about["file"]).read_bytes().decode("utf-8", "replace")
    text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]|\x08", " ", text)
    at = 0
    for row in truth:
        allowed = about["within"][row["phase"]]
        # A row may precede another one that is printed in the same line.
        line = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at), 0)
        numbers = NUMBER.finditer(text, line)
        found = next((n for n in numbers if close(float(n[0]), float(row["loss"]), allowed)), None)
        if found is None:
            return [f"not printed: {row}"]
        at = found.start()
    return []


if __name__ == "__main__":
    bad = {folder: found for folder in sys.argv[1:] if (found := problems(Path(folder)))}
    for folder, found in bad.items():
        print(f"{folder}: {'; '.join(found)}")
    sys.exit(bool(bad))
