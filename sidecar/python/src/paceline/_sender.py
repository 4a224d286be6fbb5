"""Sends reports to the sidecar from a bounded queue, in a thread."""

from __future__ import annotations

import http.client
import logging
import os
import threading
import time
from collections import deque
from typing import Any, NamedTuple, Optional

from . import _record
from ._address import Address
from ._http import Connection

log = logging.getLogger("paceline")

PATH = "/v1/report"
# Maximum number of waiting reports; further ones replace the oldest.
CAPACITY = 4096
# Maximum number of reports per request.
BATCH = 256
# Status codes with which the sidecar rejects invalid reports.
REJECTED = (400, 413, 422)
# Seconds that the first report of a batch waits for others.
LINGER = 0.02
# Seconds between attempts while nothing listens: the first and the maximum.
FIRST_BACKOFF, MAX_BACKOFF = 0.25, 5.0


class Stats(NamedTuple):
    """Counts of the reports of this process."""

    #: Accepted by the sidecar.
    sent: int = 0
    #: Waiting to be sent.
    waiting: int = 0
    #: Dropped because too many were waiting.
    dropped: int = 0
    #: Invalid, as found here or by the sidecar.
    rejected: int = 0


class Sender:
    """Sends reports from a thread of its own."""

    def __init__(self, address: Address, capacity: int = CAPACITY) -> None:
        self._queue: deque[dict[str, Any]] = deque(maxlen=capacity)
        self._capacity = capacity
        # The lines being sent; sent again after a failure.
        self._lines: list[bytes] = []
        self._max_lines = BATCH
        self._connection = Connection(address)
        self._new_reports = threading.Event()
        self._wake_now = threading.Event()
        # Number of finished attempts to send everything, successful or not.
        self._rounds = 0
        self._round_ended = threading.Condition()
        self._sent = self._dropped = self._rejected = 0
        # With its number, the sidecar knows a report that is sent again. JSON numbers have 53 bits.
        self._id = int.from_bytes(os.urandom(6), "big")
        self._number = 0
        self._logged: set[str] = set()
        self._thread = threading.Thread(target=self._run, name="paceline", daemon=True)
        self._thread.start()

    def put(self, record: dict[str, Any]) -> None:
        """Takes a report; never waits."""
        if len(self._queue) == self._capacity:
            self._dropped += 1
        self._queue.append(record)
        if not self._new_reports.is_set():
            self._new_reports.set()

    def reject(self, reason: str) -> None:
        """Counts an invalid report."""
        self._rejected += 1
        self.once("invalid report", reason)

    def flush(self, timeout: float) -> bool:
        """Waits until everything is sent, sending has failed, or `timeout` seconds have passed."""
        until = time.monotonic() + timeout
        with self._round_ended:
            # The current round may not include the last report.
            wanted = self._rounds + 2
            while self._rounds < wanted and self._waiting() and self._thread.is_alive():
                self._wake_now.set()
                self._new_reports.set()
                left = until - time.monotonic()
                if left <= 0 or not self._round_ended.wait(left):
                    break
        return not self._waiting()

    def stats(self) -> Stats:
        """The counts so far."""
        return Stats(self._sent, self._waiting(), self._dropped, self._rejected)

    def once(self, kind: str, reason: object) -> None:
        """Logs the first failure of each kind."""
        if kind not in self._logged:
            self._logged.add(kind)
            log.debug("%s: %s", kind, reason)

    def _waiting(self) -> int:
        return len(self._queue) + len(self._lines)

    def _run(self) -> None:
        backoff = FIRST_BACKOFF
        while True:
            self._new_reports.wait()
            self._wake_now.wait(LINGER)
            self._wake_now.clear()
            self._new_reports.clear()
            failure = self._send_all()
            with self._round_ended:
                self._rounds += 1
                self._round_ended.notify_all()
            if failure is None:
                backoff = FIRST_BACKOFF
                continue
            self.once(type(failure).__name__, failure)
            self._wake_now.wait(backoff)
            backoff = min(2 * backoff, MAX_BACKOFF)
            self._new_reports.set()

    def _send_all(self) -> Optional[Exception]:
        try:
            while self._fill():
                self._send()
        except Exception as failure:
            self._connection.close()
            return failure
        return None

    def _fill(self) -> bool:
        """Encodes waiting reports; returns whether there are lines to send."""
        while self._queue and len(self._lines) < BATCH:
            self._number += 1
            mark = {"sender": self._id, "number": self._number}
            line = _record.encode(self._queue.popleft(), mark)
            if line is None:
                self.reject("it is empty or has an invalid number")
            else:
                self._lines.append(line)
        return bool(self._lines)

    def _send(self) -> None:
        lines = self._lines[: self._max_lines]
        status, answer = self._connection.post(PATH, b"".join(lines))
        if status in REJECTED and len(lines) > 1:
            # One invalid line rejects the whole request, so lines are sent one by one.
            self._max_lines = 1
            return
        if status in REJECTED:
            self._rejected += 1
            self.once("the sidecar rejected a report", answer)
        elif 200 <= status < 300:
            self._sent += len(lines)
        else:
            # Something other than a sidecar listens there.
            raise http.client.HTTPException(f"status {status}")
        del self._lines[: len(lines)]
        if not self._lines:
            self._max_lines = BATCH
