"""Connections to the sidecar."""

from __future__ import annotations

import http.client
import socket
from typing import Optional

from ._address import Address

# Seconds for connecting and for each answer. A local sidecar answers within a millisecond.
TIMEOUT = 2.0


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def connection(address: Address) -> http.client.HTTPConnection:
    """A connection that is opened by its first request. It ignores proxies."""
    host, port, path = address
    if path is not None:
        return _UnixConnection(path, TIMEOUT)
    return http.client.HTTPConnection(host, port, timeout=TIMEOUT)


class Connection:
    """Connects on demand. It ignores proxies: a sidecar is never behind one."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._connection: Optional[http.client.HTTPConnection] = None

    def post(self, path: str, body: bytes) -> tuple[int, str]:
        """Returns the status and the start of the answer. Raises errors of sockets and HTTP."""
        # A server may close an idle connection just when it is used again.
        if self._connection is not None:
            try:
                return self._post(self._connection, path, body)
            except (ConnectionError, http.client.BadStatusLine):
                self.close()
            except BaseException:
                self.close()
                raise
        self._connection = opened = connection(self._address)
        try:
            return self._post(opened, path, body)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Closes the connection."""
        opened, self._connection = self._connection, None
        if opened is not None:
            opened.close()

    @staticmethod
    def _post(opened: http.client.HTTPConnection, path: str, body: bytes) -> tuple[int, str]:
        opened.request("POST", path, body, {"Content-Type": "application/x-ndjson"})
        answer = opened.getresponse()
        text = answer.read(4096)
        # The answer is longer than needed: close the connection instead of reading the rest.
        if not answer.isclosed():
            opened.close()
        return answer.status, text.decode("utf-8", "replace")
