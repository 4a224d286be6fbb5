"""The address of the sidecar."""

from __future__ import annotations

from typing import NamedTuple, Optional

DEFAULT = "127.0.0.1:7223"
# Wildcard addresses of a server, and the loopback addresses that reach it.
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Address(NamedTuple):
    """A host and a port, or the path of a Unix socket."""

    host: str
    port: int
    path: Optional[str] = None


def parse(text: str) -> Address:
    """Reads `host:port` or `unix:/path.sock`; raises `ValueError`."""
    if text.startswith("unix:"):
        path = text[len("unix:") :]
        if not path.startswith("/"):
            raise ValueError("expected an absolute path, for example unix:/path.sock")
        return Address("localhost", 0, path)
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host and not bracketed):
        raise ValueError("expected `host:port` or `unix:/path.sock`")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not 0 < number < 65536:
        raise ValueError("expected a port from 1 to 65535")
    return Address(_ANY.get(host, host), number)
