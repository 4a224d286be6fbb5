"""What stands between a training loop and the sidecar: a bounded queue and a thread."""

from __future__ import annotations

import http.client
import logging
import threading
import time
from collections import deque
from typing import Any, NamedTuple, Optional

from . import _record
from ._address import Address
from ._http import Connection

log = logging.getLogger("paceline")

PATH = "/v1/report"
# Reports that wait; when there are more, the oldest go.
CAPACITY = 4096
# Reports of one request.
BATCH = 256
# What the sidecar answers to what it does not understand.
REFUSED = (400, 413, 422)
# How long the first of a batch waits for others.
LINGER = 0.02
# Between attempts while nothing listens: the first, and the longest.
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 5.0


class Stats(NamedTuple):
    """What became of the reports of this process."""

    #: Taken by the sidecar.
    sent: int = 0
    #: Waiting to be sent.
    waiting: int = 0
    #: Left out because too many were waiting.
    dropped: int = 0
    #: Not understood, here or by the sidecar.
    rejected: int = 0


class Sender:
    """Sends reports from a thread of its own."""

    def __init__(self, address: Address, capacity: int = CAPACITY) -> None:
        self._queue: deque[dict[str, Any]] = deque(maxlen=capacity)
        self._capacity = capacity
        # What is being sent, and is sent again if that fails.
        self._lines: list[bytes] = []
        self._at_once = BATCH
        self._connection = Connection(address)
        self._news = threading.Event()
        self._hurry = threading.Event()
        # Attempts to send everything that have ended, well or not.
        self._rounds = 0
        self._round_ended = threading.Condition()
        self._sent = self._dropped = self._rejected = 0
        self._said: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="paceline", daemon=True)
        self._thread.start()

    def put(self, record: dict[str, Any]) -> None:
        """Takes a report; never waits."""
        if len(self._queue) == self._capacity:
            self._dropped += 1
        self._queue.append(record)
        if not self._news.is_set():
            self._news.set()

    def reject(self, reason: str) -> None:
        """Counts a report that cannot be understood."""
        self._rejected += 1
        self.once("a report was not understood", reason)

    def flush(self, timeout: float) -> bool:
        """Waits until all has been sent, or sending has failed, or the time is over."""
        until = time.monotonic() + timeout
        with self._round_ended:
            # A round that is under way may have left out the last report.
            wanted = self._rounds + 2
            while self._rounds < wanted and self._waiting() and self._thread.is_alive():
                self._hurry.set()
                self._news.set()
                left = until - time.monotonic()
                if left <= 0 or not self._round_ended.wait(left):
                    break
        return not self._waiting()

    def stats(self) -> Stats:
        """What became of the reports so far."""
        return Stats(self._sent, self._waiting(), self._dropped, self._rejected)

    def once(self, kind: str, reason: object) -> None:
        """Logs the first failure of a kind."""
        if kind not in self._said:
            self._said.add(kind)
            log.debug("%s: %s", kind, reason)

    def _waiting(self) -> int:
        return len(self._queue) + len(self._lines)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while True:
            self._news.wait()
            self._hurry.wait(LINGER)
            self._hurry.clear()
            self._news.clear()
            failure = self._send_all()
            with self._round_ended:
                self._rounds += 1
                self._round_ended.notify_all()
            if failure is None:
                pause = FIRST_PAUSE
                continue
            self.once(type(failure).__name__, failure)
            self._hurry.wait(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
            self._news.set()

    def _send_all(self) -> Optional[Exception]:
        try:
            while self._fill():
                self._send()
        except Exception as failure:
            self._connection.close()
            return failure
        return None

    def _fill(self) -> bool:
        """Whether there are lines to send."""
        while self._queue and len(self._lines) < BATCH:
            line = _record.encode(self._queue.popleft())
            if line is None:
                self.reject("it says nothing, or something that is no number")
            else:
                self._lines.append(line)
        return bool(self._lines)

    def _send(self) -> None:
        lines = self._lines[: self._at_once]
        status, said = self._connection.post(PATH, b"".join(lines))
        if status in REFUSED and len(lines) > 1:
            # One bad line has all refused.
            self._at_once = 1
            return
        if status in REFUSED:
            self._rejected += 1
            self.once("the sidecar refused a report", said)
        elif 200 <= status < 300:
            self._sent += len(lines)
        else:
            # Something else listens there.
            raise http.client.HTTPException(f"status {status}")
        del self._lines[: len(lines)]
        if not self._lines:
            self._at_once = BATCH
