"""The address of the sidecar."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Optional

DEFAULT = "127.0.0.1:7223"
#: The variables that name the address; the first that is set counts.
VARIABLES = ("PACELINE_REPORT_TO", "PACELINE_LISTEN")
#: The value of a variable where the job's sidecar has no endpoint.
NOWHERE = "none"
# Wildcard addresses of a server, and the loopback addresses that reach it.
_ANY = {"0.0.0.0": "127.0.0.1", "::": "::1"}


class Address(NamedTuple):
    """A host and a port, or the path of a Unix socket."""

    host: str
    port: int
    path: Optional[str] = None


def of_sidecar(environment: Mapping[str, str]) -> Optional[Address]:
    """The address of this job's sidecar, `None` if it has no endpoint; raises `ValueError`."""
    name, text = setting(environment)
    return None if text == NOWHERE else of_setting(name, text or DEFAULT)


def setting(environment: Mapping[str, str]) -> tuple[str, str]:
    """The variable that names the sidecar's address, and its text: empty if none does.

    `exec` sets `PACELINE_REPORT_TO`: its endpoint may be at another port than that of
    `PACELINE_LISTEN` or the default, where another job's sidecar may be.
    """
    texts = ((name, environment.get(name, "").strip()) for name in VARIABLES)
    return next((given for given in texts if given[1]), (VARIABLES[-1], ""))


def of_setting(name: str, text: str) -> Address:
    """Reads the text of a variable; raises `ValueError`, which names both."""
    try:
        return parse(text)
    except ValueError as failure:
        raise ValueError(f'invalid {name} "{text}": {failure}') from None


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
