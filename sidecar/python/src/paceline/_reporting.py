"""The reports of this process."""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any, Callable, Literal, Optional, SupportsFloat, SupportsInt, Union

from . import _address, _record
from ._sender import Sender, Stats, log

#: A number, a tensor with one element, or a function that returns either. It is called later, in
#: another thread.
Number = Union[SupportsFloat, Callable[[], SupportsFloat]]
#: The steps over which a loss is averaged.
Mean = Literal["step", "interval", "epoch_so_far", "epoch", "run"]

# Maximum seconds that the end of the process waits for the last reports.
EXIT_TIMEOUT = 0.5

_lock = threading.Lock()
_sender: Optional[Sender] = None
_silent = False
_rank: Optional[int] = None


def report(
    *,
    loss: Optional[Number] = None,
    batch_seconds: Optional[Number] = None,
    step: Optional[SupportsInt] = None,
    epoch: Optional[SupportsFloat] = None,
    val_loss: Optional[Number] = None,
    test_loss: Optional[Number] = None,
    total_steps: Optional[SupportsInt] = None,
    expected_steps: Optional[SupportsInt] = None,
    mean: Mean = "step",
) -> None:
    """Reports a batch to the sidecar. It never raises and never waits.

    A tensor on a GPU is read later, in another thread. The loop does not wait for the device.
    """
    sender = _sender
    if sender is None:
        sender = _start()
        if sender is None:
            return
    try:
        record: dict[str, Any] = {"at": time.time()}
        if loss is not None:
            record["loss"] = _record.settled(loss)
            if mean != "step":
                record["mean"] = mean
        if batch_seconds is not None:
            record["batch_seconds"] = batch_seconds
        if step is not None:
            record["step"] = step
        if epoch is not None:
            record["epoch"] = epoch
        if val_loss is not None:
            record["val_loss"] = _record.settled(val_loss)
        if test_loss is not None:
            record["test_loss"] = _record.settled(test_loss)
        if total_steps is not None:
            record["total_steps"] = total_steps
        if expected_steps is not None:
            record["expected_steps"] = expected_steps
        if _rank is not None:
            record["rank"] = _rank
        sender.put(record)
    except Exception as failure:
        sender.reject(repr(failure))


def flush(timeout: float = EXIT_TIMEOUT) -> bool:
    """Waits up to `timeout` seconds until all reports are sent; returns whether they are."""
    sender = _sender
    return sender is None or sender.flush(timeout)


def stats() -> Stats:
    """Counts of the reports of this process."""
    sender = _sender
    return Stats() if sender is None else sender.stats()


def _start() -> Optional[Sender]:
    """Creates the sender for the first report, unless reporting is off in this process."""
    global _sender, _silent, _rank
    if _silent:
        return None
    try:
        with _lock:
            if _sender is None and not _silent:
                silent = _is_off(os.environ) or _in_data_loader()
                address = None if silent else _address.of_sidecar(os.environ)
                if address is None:
                    _silent = True
                    return None
                _rank = _rank_of(os.environ)
                _sender = Sender(address)
                _flush_at_exit()
            return _sender
    except ValueError as failure:
        # The user's setting is invalid, and nothing else would report that.
        log.warning("%s; nothing is reported", failure)
    except Exception as failure:
        log.debug("nothing is reported: %r", failure)
    _silent = True
    return None


def _setting(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name, "").strip()


def _is_off(environment: Mapping[str, str]) -> bool:
    return _setting(environment, "PACELINE_DISABLED") in ("1", "true")


def _rank_of(environment: Mapping[str, str]) -> Optional[int]:
    """The rank that torchrun, Slurm or Open MPI set."""
    for name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK"):
        text = _setting(environment, name)
        if text.isascii() and text.isdigit():
            return int(text)
    return None


def _in_data_loader() -> bool:
    """Whether this process is a worker that only reads data for another one."""
    data = sys.modules.get("torch.utils.data")
    return data is not None and data.get_worker_info() is not None


def _flush_at_exit() -> None:
    atexit.register(flush)
    # A child of multiprocessing ends without running atexit handlers.
    multiprocessing = sys.modules.get("multiprocessing")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        from multiprocessing.util import Finalize

        Finalize(None, flush, exitpriority=10)


def _forked() -> None:
    """Turns reporting off in a forked child: the parent keeps the thread and the connection."""
    global _lock, _sender, _silent
    _lock = threading.Lock()
    if _sender is not None:
        _sender = None
        _silent = True


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
