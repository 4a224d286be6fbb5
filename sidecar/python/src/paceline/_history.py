"""The past of a job as a plain dict of lists."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any, Optional, cast

from . import _command, _endpoint
from ._endpoint import MAX_BYTES, Source

#: The columns: each is a list with one entry per point.
History = dict[str, list[Optional[float]]]

#: The columns of every history, in this order.
COLUMNS = (
    "from",
    "to",
    "step",
    "loss",
    "loss_low",
    "loss_high",
    "loss_smoothed",
    "validation",
    "batch_p50",
    "batch_p95",
    "batch_p99",
)
# The columns to which the fields of a report belong. A report is one step, so its time is each percentile.
_OF_REPORT = {
    "at": ("from", "to"),
    "step": ("step",),
    "loss": ("loss", "loss_low", "loss_high"),
    "val_loss": ("validation",),
    "batch_seconds": ("batch_p50", "batch_p95", "batch_p99"),
}


def history(path_or_address: Optional[Source] = None) -> History:
    """The past of a job: a dict of equally long lists, oldest point first.

    `path_or_address` is the address of a running job (`127.0.0.1:7223`, `unix:/path.sock`, a port),
    or a file: a saved `/v1/history`, a status file, JSON lines of progress or of reports, or a log,
    which is read by `paceline-sidecar replay`. By default it is the job of this machine.

    A value that is not known is `None`. Times are Unix seconds, durations are seconds.
    `pandas.DataFrame(paceline.history())` is a table.

    Raises `ConnectionError` if no job answers, `OSError` if a file cannot be read, and `ValueError`
    if its content or the address is invalid.
    """
    found = _endpoint.default() if path_or_address is None else _endpoint.locate(path_or_address)
    if isinstance(found, str):
        return _of_file(found)
    return of_object(_endpoint.past(found))


def of_object(value: dict[str, Any]) -> History:
    """The columns of a body of `/v1/history`; raises `ValueError`."""
    lists = {name: column for name, column in value.items() if isinstance(column, list)}
    # `to` is always there; other columns may be missing in versions before or after this one.
    length = len(lists.get("to", ()))
    if any(len(column) != length for column in lists.values()):
        raise ValueError("its lists are not equally long")
    named: History = {name: lists.pop(name, [None] * length) for name in COLUMNS}
    return {**named, **lists}


def _of_file(path: str) -> History:
    with open(path, "rb") as file:
        body = file.read(MAX_BYTES + 1)
    if len(body) > MAX_BYTES:
        raise ValueError(f"cannot read {path}: it is larger than {MAX_BYTES >> 20} MiB")
    text = body.decode("utf-8", "replace")
    try:
        return _of_text(text)
    except ValueError as failure:
        if _is_json(text):
            raise ValueError(f"cannot read {path}: {failure}") from None
    return _of_log(path)


def _is_json(text: str) -> bool:
    """Whether invalid content is meant to be JSON. Lines of a log may begin with a bracket, too."""
    line = next((line for line in text.splitlines() if line.strip()), "")
    # The line of a saved history may have been cut off. Dicts that Python prints have other quotes.
    if line.startswith("data:") or line.lstrip().startswith('{"'):
        return True
    for part in (text, line):
        try:
            return isinstance(json.loads(part), (dict, list))
        except ValueError:
            continue
    return False


def _of_text(text: str) -> History:
    """A saved history, or lines of progress or of reports."""
    try:
        values = [json.loads(text)]
    except ValueError:
        values = list(_lines(text))
    if len(values) == 1 and isinstance(values[0], dict) and isinstance(values[0].get("to"), list):
        return of_object(values[0])
    rows = [_row(value) for value in values]
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def _lines(text: str) -> Iterator[Any]:
    """The objects of JSON lines, also of saved events. The last line may have been cut off."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(":")]
    for number, line in enumerate(lines, 1):
        try:
            yield json.loads(line[len("data:") :] if line.startswith("data:") else line)
        except ValueError:
            if number == len(lines) > 1 and not text.endswith("\n"):
                return
            raise ValueError(f"line {number} is not JSON") from None


def _row(value: Any) -> dict[str, Optional[float]]:
    if not isinstance(value, dict):
        raise ValueError("expected objects: a history, progress or reports")
    if isinstance(value.get("eval"), dict):
        return _row_of_progress(value)
    if not value.keys() & (_OF_REPORT.keys() | {"epoch", "total_steps", "expected_steps"}):
        raise ValueError("an object is neither a history, nor progress, nor a report")
    return {
        column: _number(value.get(field))
        for field, columns in _OF_REPORT.items()
        for column in columns
    }


def _row_of_progress(progress: dict[str, Any]) -> dict[str, Optional[float]]:
    def inner(part: str, name: str) -> Any:
        return (progress.get(part) or {}).get(name)

    values = {
        "from": progress.get("now"),
        "to": progress.get("now"),
        "step": progress.get("step"),
        "loss": inner("eval", "value"),
        "loss_smoothed": inner("signals", "loss_smoothed"),
        "validation": inner("validation", "value"),
        "batch_p50": inner("batch_latency", "p50"),
        "batch_p95": inner("batch_latency", "p95"),
        "batch_p99": inner("batch_latency", "p99"),
    }
    return {name: _number(value) for name, value in values.items()}


def _number(value: Any) -> Optional[float]:
    """A number as it is; NaN and infinity, which are strings in JSON, as numbers."""
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return cast(float, value) if isinstance(value, (int, float)) else None


def _of_log(path: str) -> History:
    """What the sidecar reads of the output of a program."""
    read = _command.replay(path)
    values = list(_lines(read))
    if not any(value.keys() & {"loss", "val_loss"} for value in values):
        raise ValueError(
            f"cannot read {path}: it has no loss; `paceline-sidecar replay --explain {path}` says why"
        )
    rows: list[dict[str, Optional[float]]] = []
    step: Optional[float] = None
    for value in values:
        # The replay names a step only where it changes.
        step = value.setdefault("step", step)
        if value.keys() & {"loss", "val_loss", "batch_seconds"}:
            rows.append(_row(value))
    return {name: [row.get(name) for row in rows] for name in COLUMNS}


def finite(values: list[Optional[float]]) -> list[float]:
    """The values that can be drawn."""
    return [value for value in values if value is not None and math.isfinite(value)]
