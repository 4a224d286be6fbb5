"""Keeps a failure here away from the training."""

from __future__ import annotations

import functools
from typing import Any, Callable

from ._sender import log

Method = Callable[..., None]


def never_raises(method: Method) -> Method:
    """A method of a callback whose failures go to the logger, not into the training."""

    @functools.wraps(method)
    def guarded(*arguments: Any, **named: Any) -> None:
        try:
            method(*arguments, **named)
        except Exception as failure:
            log.debug("%s: %r", method.__qualname__, failure)

    return guarded
