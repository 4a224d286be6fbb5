"""A job's progress in words."""

from __future__ import annotations

import math
from typing import Any, Optional


def number(value: Optional[float], digits: int = 4) -> str:
    """A number with that many significant digits."""
    if value is None:
        return "unknown"
    if not math.isfinite(value):
        return str(value)
    text = f"{value:.{digits}g}"
    return f"{value:,.0f}" if "e+" in text and abs(value) < 1e9 else text


def seconds(value: float) -> str:
    """A duration: `350 µs`, `41 ms`, `2.5 s`, `12 min`, `3 h 5 min`, `2 d 4 h`."""
    if value < 0.001:
        return f"{value * 1e6:.3g} µs"
    if value < 1:
        return f"{value * 1e3:.3g} ms"
    if value < 100:
        return f"{value:.3g} s"
    minutes = round(value / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def state(progress: dict[str, Any]) -> str:
    """One word, or two where the loss is in trouble."""
    word = str(progress.get("state") or "unknown")
    signals = progress.get("signals") or {}
    if word == "running" and signals.get("activity") in ("stalled", "evaluating", "checkpointing"):
        word = str(signals["activity"])
    health = signals.get("health")
    if health == "diverging":
        word += ", loss diverging"
    if health == "nonfinite":
        word += ", loss not finite"
    return word


def facts(progress: dict[str, Any]) -> list[str]:
    """What is known of the job, as short phrases."""
    found = []
    step, total = progress.get("step"), progress.get("total_steps")
    if step:
        of = f" of {total:,} ({100 * step / total:.0f} %)" if total else ""
        found.append(f"step {step:,}{of}")
    loss = progress.get("eval") or {}
    if loss.get("value") is not None:
        found.append(f"{loss.get('name') or 'loss'} {number(loss['value'])}")
    if loss.get("best") is not None:
        found.append(f"best {number(loss['best'])}")
    held_out = (progress.get("validation") or {}).get("value")
    if held_out is not None:
        found.append(f"validation {number(held_out)}")
    batch = (progress.get("batch_latency") or {}).get("p50")
    if batch is not None:
        found.append(f"{seconds(batch)} a batch")
    left = (progress.get("signals") or {}).get("eta_seconds")
    if left is not None and progress.get("state") == "running":
        found.append(f"{seconds(left)} left")
    return found or ["no report yet"]


def line(progress: dict[str, Any]) -> str:
    """The job in one line."""
    name = progress.get("job") or "job"
    return f"{name}: {state(progress)}, {', '.join(facts(progress))}"
