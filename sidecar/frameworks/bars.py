"""Draws a bar with the loss of each step, as scripts in a terminal do: with tqdm or rich.

    bars.py tqdm|rich TRUTH

Fails without a terminal, where neither would draw its bar as people know it. TRUTH is a file for the
losses, one a line.
"""

import sys
import time

STEPS = 80
PACE = 0.03


def losses(truth):
    """Yields the loss of each step, and writes it down."""
    for step in range(1, STEPS + 1):
        time.sleep(PACE)
        loss = round(2 / step + 0.25, 4)
        truth.write(f"{loss}\n")
        yield step, loss


def with_tqdm(truth):
    from tqdm import tqdm

    with tqdm(total=STEPS, desc="Epoch 1/1", mininterval=0) as bar:
        for _, loss in losses(truth):
            bar.set_postfix_str(f"loss={loss:.4f}", refresh=False)
            bar.update()


def with_rich(truth):
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = [
        TextColumn("[green]{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[report]}"),
    ]
    with Progress(*columns, auto_refresh=False) as progress:
        task = progress.add_task("Training", total=STEPS, report="")
        for step, loss in losses(truth):
            progress.update(task, completed=step, report=f"loss: {loss:.4f}", refresh=True)


def main():
    library, path = sys.argv[1:]
    if not (sys.stdout.isatty() and sys.stderr.isatty()):
        sys.exit("bars.py: expected a terminal")
    with open(path, "w") as truth:
        {"tqdm": with_tqdm, "rich": with_rich}[library](truth)


if __name__ == "__main__":
    main()
