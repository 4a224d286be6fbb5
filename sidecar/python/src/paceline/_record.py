"""Converts one report to a line of JSON."""

from __future__ import annotations

import json
import math
from typing import Any, Optional, Union

# The fields of a report by type: counts become integers, numbers become floats.
COUNTS = frozenset({"step", "total_steps", "expected_steps", "rank"})
NUMBERS = frozenset({"loss", "val_loss", "test_loss", "batch_seconds", "epoch", "at"})


def settled(value: Any) -> Any:
    """Copies a value so that the loop cannot change it later. Does not wait for a device.

    A tensor on a GPU is copied on the device; the sending thread waits for it.
    """
    if type(value) is float or not hasattr(value, "detach"):
        return value
    value = value.detach()
    return value.item() if getattr(value, "is_cpu", False) else value.clone()


def encode(record: dict[str, Any], mark: dict[str, int]) -> Optional[bytes]:
    """A line of JSON with a mark; `None` if the report is empty or has an invalid number."""
    try:
        line = {key: _encoded(key, value) for key, value in record.items()}
    except Exception:
        return None
    # A time that is not positive is ignored: the clock was set back or did not advance.
    seconds = line.get("batch_seconds")
    if not isinstance(seconds, float) or seconds <= 0:
        line.pop("batch_seconds", None)
    if any(line.get(count, 0) < 0 for count in COUNTS) or line.get("expected_steps") == 0:
        return None
    if not line.keys() - {"at", "rank"}:
        return None
    line.update(mark)
    return json.dumps(line, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def _encoded(key: str, value: Any) -> Any:
    if key in NUMBERS:
        return _number(value() if callable(value) else value)
    if key in COUNTS:
        return int(value)
    return str(value)


def _number(value: Any) -> Union[float, str]:
    """JSON has no NaN and no infinity, so they become strings. The sidecar counts them."""
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "inf" if number > 0 else "-inf"
    return number
