"""Where the sidecar listens."""

from __future__ import annotations

from typing import NamedTuple, Optional

DEFAULT = "127.0.0.1:7223"
# What a server listens on to be reached at any address, and where it is reached from beside it.
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
            raise ValueError("the path of a Unix socket must be absolute")
        return Address("localhost", 0, path)
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    host = host[1:-1] if bracketed else host
    if not colon or not host or (":" in host and not bracketed):
        raise ValueError("an address is `host:port` or `unix:/path.sock`")
    number = int(port) if port.isascii() and port.isdigit() else 0
    if not 0 < number < 65536:
        raise ValueError("a port is a number from 1 to 65535")
    return Address(_ANY.get(host, host), number)
