"""Draws a job as SVG: loss above, batch latency below. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Optional
from xml.sax.saxutils import escape

from . import _words
from ._history import History, finite

Column = Sequence[Optional[float]]

WIDTH = 860
# The space for labels left of the charts, and beside them on the right.
LEFT, RIGHT = 68, 14
# The most points of a line: one per pixel and a half.
MAX_POINTS = 520
# The top and the height of each chart.
LOSS, LATENCY = (88, 214), (352, 96)
HEIGHT = 484

# The colours of the job's page. A browser in dark mode takes the second set.
STYLE = """
svg.paceline{--card:#fff;--ink:#1d2229;--quiet:#59626e;--grid:#e9ecef;--a:#0072b2;--b:#d55e00;
font:12px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif}
@media (prefers-color-scheme:dark){svg.paceline{--card:#1a1e25;--ink:#e7eaee;--quiet:#a0a9b5;
--grid:#2a303a;--a:#4da3e0;--b:#f0803c}}
.paceline .card{fill:var(--card)}
.paceline text{fill:var(--quiet)}
.paceline .ink{fill:var(--ink)}
.paceline .name{font-size:17px;font-weight:650}
.paceline path{fill:none;stroke:var(--ink);stroke-width:1.7;stroke-linejoin:round}
.paceline .grid{stroke:var(--grid);stroke-width:1}
.paceline .a{stroke:var(--a);stroke-width:1.2}
.paceline .b{stroke:var(--b)}
.paceline .band{stroke:none;fill:var(--a);fill-opacity:.16}
.paceline circle{fill:var(--b)}
""".replace("\n", "")


def draw(history: History, progress: dict[str, Any]) -> str:
    """An SVG of the job's past and present. Text of the job is never markup."""
    steps = history["step"]
    by_step = any(value is not None for value in steps)
    across = _Axis(_across(history), LEFT, WIDTH - RIGHT)
    name = str(progress.get("job") or "job")
    label = escape(_plain(_words.line(progress)), {'"': "&quot;"})
    parts = [
        f'<svg class="paceline" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'width="{WIDTH}" height="{HEIGHT}" style="max-width:100%;height:auto" role="img" '
        f'aria-label="{label}"><style>{STYLE}</style>',
        f'<rect class="card" width="{WIDTH}" height="{HEIGHT}" rx="10"/>',
        _text(18, 30, _cut(name, 44), "ink name"),
        _text(WIDTH - 18, 30, _words.state(progress), "ink", "end"),
        _text(18, 50, _cut(" · ".join(_words.facts(progress)), 130)),
        *_loss_chart(history, across),
        *_latency_chart(history, across),
        *_labels_across(across, by_step),
        "</svg>",
    ]
    return "".join(parts)


def _across(history: History) -> list[Optional[float]]:
    """Where each point stands: at its step, or at its seconds since the start."""
    steps = history["step"]
    if any(value is not None for value in steps):
        return steps
    ends = history["to"]
    start = next((value for value in ends if value is not None), 0.0)
    return [None if value is None else value - start for value in ends]


class _Axis:
    """Maps values to pixels, with round ticks."""

    def __init__(self, values: Column, first: float, last: float, zero: bool = False) -> None:
        known = finite(list(values)) + ([0.0] if zero else [])
        low, high = (min(known), max(known)) if known else (0.0, 1.0)
        # Equal values have a scale, too; so have those that differ by less than a float can divide.
        if not high - low > max(1e-9 * max(abs(low), abs(high)), 1e-280):
            pad = max(abs(low) / 2, 1e-270) if low else 0.5
            low, high = (low, high + pad) if zero else (low - pad, high + pad)
        self.values = list(values)
        self.low, self.high, self.first, self.last = low, high, first, last

    def pixel(self, value: float) -> float:
        share = value / 2 - self.low / 2
        share /= self.high / 2 - self.low / 2
        return self.first + share * (self.last - self.first)

    def ticks(self, most: int) -> list[float]:
        rough = (self.high / most) - (self.low / most)
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * size for factor in (1, 2, 5, 10) if factor * size >= rough * 0.999)
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [index * step for index in range(first, last + 1)]


def _loss_chart(history: History, across: _Axis) -> list[str]:
    top, height = LOSS
    drawn = [history[name] for name in ("loss", "loss_smoothed", "validation")]
    bounds = _without_spikes([value for column in drawn for value in finite(column)])
    axis = _Axis(bounds, top + height, top)
    items = [("loss", "a"), ("smoothed", "")]
    if finite(history["validation"]):
        items.append(("validation", "b"))
    parts = [*_grid(axis, _words.number), *_legend(top, *items)]
    parts.append(_text(LEFT, top - 8, "loss", "ink"))
    parts.append(_band(history["loss_low"], history["loss_high"], across, axis))
    parts.append(_path(history["loss"], across, axis, "a"))
    parts.append(_path(history["loss_smoothed"], across, axis, ""))
    held_out = history["validation"]
    if finite(held_out):
        parts.append(_path(held_out, across, axis, "b"))
        points = _points(held_out, across, axis)
        if len(points) <= 60:
            parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5"/>' for x, y in points]
    if not bounds:
        parts.append(_text((LEFT + WIDTH) / 2, top + height / 2, "no loss yet", "", "middle"))
    return parts


def _latency_chart(history: History, across: _Axis) -> list[str]:
    top, height = LATENCY
    names = ("batch_p50", "batch_p95", "batch_p99")
    axis = _Axis(
        [value for name in names for value in finite(history[name])], top + height, top, zero=True
    )
    parts = [
        *_grid(axis, _words.seconds, 6),
        _text(LEFT, top - 8, "batch latency", "ink"),
        *_legend(top, ("p50", ""), ("p95", "a"), ("p99", "b")),
    ]
    for name, kind in zip(reversed(names), ("b", "a", "")):
        parts.append(_path(history[name], across, axis, kind))
    return parts


def _labels_across(across: _Axis, by_step: bool) -> list[str]:
    bottom = LATENCY[0] + LATENCY[1] + 16
    parts = []
    if finite(across.values):
        for tick in across.ticks(7):
            text = f"{tick:,.10g}" if by_step else _words.seconds(tick) if tick else "0"
            parts.append(_text(across.pixel(tick), bottom, text, "", "middle"))
    parts.append(_text(18, bottom, "step" if by_step else "time"))
    return parts


def _grid(axis: _Axis, words: Any, most: int = 5) -> list[str]:
    parts = []
    for tick in axis.ticks(most):
        y = axis.pixel(tick)
        parts.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}"/>')
        parts.append(_text(LEFT - 8, y + 4, words(tick) if tick else "0", "", "end"))
    return parts


def _legend(top: float, *items: tuple[str, str]) -> list[str]:
    """Above the right end of a chart: a piece of each line, and its name."""
    parts = []
    for index, (name, kind) in enumerate(items):
        x = WIDTH - RIGHT - 94 * (len(items) - index)
        parts.append(f'<path class="{kind}" d="M{x} {top - 12}h14"/>')
        parts.append(_text(x + 19, top - 8, name))
    return parts


def _points(column: Column, across: _Axis, axis: _Axis) -> list[tuple[float, float]]:
    """The known points in pixels, thinned by their mean to what can be seen."""
    known = [
        (across.pixel(x), min(max(axis.pixel(y), axis.last - 4), axis.first))
        for x, y in zip(across.values, column)
        if x is not None and y is not None and math.isfinite(x) and math.isfinite(y)
    ]
    size = -(-len(known) // MAX_POINTS)
    if size <= 1:
        return known
    groups = [known[at : at + size] for at in range(0, len(known), size)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def _path(column: Column, across: _Axis, axis: _Axis, kind: str) -> str:
    points = _points(column, across, axis)
    if not points:
        return ""
    # A line of one point has no length: a short one shows it.
    end = "h2" if len(points) == 1 else ""
    return f'<path class="{kind}" d="M{_join(points)}{end}"/>'


def _band(low: Column, high: Column, across: _Axis, axis: _Axis) -> str:
    above, below = _points(high, across, axis), _points(low, across, axis)
    if len(above) < 2 or len(above) != len(below):
        return ""
    return f'<path class="band" d="M{_join(above + below[::-1])}Z"/>'


def _join(points: Sequence[tuple[float, float]]) -> str:
    return "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _without_spikes(values: list[float]) -> list[float]:
    """The values that set the scale: a few early or wild ones may leave the chart at its top."""
    if len(values) < 50:
        return values
    ordered = sorted(values)
    low, middle, high = (ordered[int(share * (len(ordered) - 1))] for share in (0, 0.5, 0.99))
    limit = high + 2 * (middle - low)
    return [value for value in values if value <= limit] or values


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def _plain(text: str) -> str:
    """XML has no control characters, not even as references."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(_plain(text))}</text>'
