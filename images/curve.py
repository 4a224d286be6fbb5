#!/usr/bin/env python3
"""Draws the losses of a run, which `--losses FILE` wrote, as SVG on standard output.

Usage: curve.py FILE TITLE [TARGET…]. The line is the mean of five steps, as the endpoint
publishes it; the loss has a logarithmic scale. Targets are dashed lines.
"""

import math
import sys
from collections.abc import Iterator
from html import escape

WIDTH, HEIGHT, MARGIN = 720, 360, 60
WINDOW = 5
# More points than there are pixels would not be seen.
POINTS = 600


def means(path: str) -> list[tuple[int, float]]:
    with open(path) as file:
        losses = [(int(step), float(loss)) for step, loss in map(str.split, file)]
    last: list[float] = []
    points = []
    for step, loss in losses:
        last = [*last, loss][-WINDOW:]
        points.append((step, sum(last) / len(last)))
    return points[WINDOW - 1 :: math.ceil(len(points) / POINTS)]


def ticks(low: float, high: float) -> Iterator[float]:
    """Round numbers in a range of losses."""
    for exponent in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1):
        for digit in (1, 2, 5):
            value = digit * 10.0**exponent
            if low <= value <= high:
                yield value


def draw(points: list[tuple[int, float]], title: str, targets: list[float]) -> str:
    steps = points[-1][0]
    values = [loss for _, loss in points] + targets
    low, high = min(values) * 0.9, max(values) * 1.1

    def x(step: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * step / steps

    def y(loss: float) -> float:
        part = math.log(loss / low) / math.log(high / low)
        return HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * part

    left, right, bottom = MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
        f'<text x="{WIDTH / 2}" y="{MARGIN / 2}" text-anchor="middle" font-size="15">'
        f"{escape(title)}</text>",
        f'<text x="{WIDTH / 2}" y="{HEIGHT - 15}" text-anchor="middle">step</text>',
    ]
    for value in ticks(low, high):
        at = f"{y(value):.1f}"
        parts.append(f'<line x1="{left}" x2="{right}" y1="{at}" y2="{at}" stroke="#ddd"/>')
        parts.append(f'<text x="{left - 8}" y="{at}" dy="4" text-anchor="end">{value:g}</text>')
    for fifth in range(6):
        step = steps * fifth / 5
        parts.append(
            f'<text x="{x(step):.1f}" y="{bottom + 18}" text-anchor="middle">{step:.0f}</text>'
        )
    for target in targets:
        at = f"{y(target):.1f}"
        parts.append(
            f'<line x1="{left}" x2="{right}" y1="{at}" y2="{at}" stroke="#c33" '
            'stroke-dasharray="6 4"/>'
        )
        parts.append(f'<text x="{right + 6}" y="{at}" dy="4" fill="#c33">{target:g}</text>')
    line = " ".join(f"{x(step):.1f},{y(loss):.1f}" for step, loss in points)
    parts.append(f'<polyline points="{line}" fill="none" stroke="#246" stroke-width="1.5"/>')
    return "\n".join([*parts, "</svg>"])


def main() -> None:
    if len(sys.argv) < 3:
        sys.exit("usage: curve.py FILE TITLE [TARGET…]")
    path, title, *targets = sys.argv[1:]
    print(draw(means(path), title, [float(target) for target in targets]))


if __name__ == "__main__":
    main()
