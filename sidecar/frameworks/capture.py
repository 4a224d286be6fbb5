"""Runs a command with its output in pipes; keeps the bytes and their arrival times.

    capture.py FOLDER {stdout|stderr|merged} -- COMMAND…

writes FOLDER/STREAM.log and FOLDER/arrivals.csv. The other stream is passed on to stderr, unless
both are merged, as a shell does with `2>&1`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

# Pieces within this many seconds are one arrival.
TOGETHER = 0.001


def main(folder: Path, stream: str, command: list[str]) -> int:
    piped = {"stdout": subprocess.PIPE, "stderr": None}
    if stream == "stderr":
        piped = {"stdout": sys.stderr, "stderr": subprocess.PIPE}
    elif stream == "merged":
        piped = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    child = subprocess.Popen(command, bufsize=0, env=environment, **piped)
    pipe = child.stderr if stream == "stderr" else child.stdout
    arrivals: list[tuple[float, int]] = []
    total = 0
    with open(folder / f"{stream}.log", "wb") as log:
        while piece := os.read(pipe.fileno(), 65536):
            now = time.time()
            log.write(piece)
            total += len(piece)
            if arrivals and now - arrivals[-1][0] < TOGETHER:
                arrivals[-1] = (arrivals[-1][0], total)
            else:
                arrivals.append((now, total))
    with open(folder / "arrivals.csv", "w", encoding="ascii") as table:
        table.write("at,bytes\n")
        table.writelines(f"{at:.4f},{bytes}\n" for at, bytes in arrivals)
    return child.wait()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], sys.argv[4:]))
