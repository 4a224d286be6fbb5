"""Reads the endpoint of a job: a sidecar's, or that of a reporter in Rust."""

from __future__ import annotations

import http.client
import json
import os
import stat
from collections.abc import Mapping
from typing import Any, Optional, Union, cast

from . import _address
from ._address import Address
from ._http import connection

#: An address such as `127.0.0.1:7223` or `unix:/path.sock`, the address of a page, a port, or a path.
Source = Union[str, int, "os.PathLike[str]"]

# Maximum bytes of an answer or a file: the past of a job has some 300 KB.
MAX_BYTES = 64 * 1024 * 1024
# The ports that jobs take where the default is taken.
MORE_PORTS = range(7230, 7300)
EXPECTED = (
    "expected host:port, unix:/path.sock, a port or the path of a file, for example 127.0.0.1:7223"
)
START = "start the job with `paceline-sidecar exec -- python train.py`, or name its address"


def locate(source: Source) -> Union[Address, str]:
    """The address that is meant, or the path of a file; raises `ValueError`."""
    if isinstance(source, bool) or not isinstance(source, (str, int, os.PathLike)):
        raise ValueError(f'invalid address "{source}": {EXPECTED}')
    if isinstance(source, os.PathLike):
        return _socket_or_file(os.fspath(source))
    text = str(source).strip()
    if text.isascii() and text.isdigit():
        text = f"127.0.0.1:{text}"
    elif text.startswith("http://"):
        text = text[len("http://") :].partition("/")[0]
    elif os.path.exists(text) or (os.sep in text and not text.startswith("unix:")):
        return _socket_or_file(text)
    try:
        return _address.parse(text)
    except ValueError:
        raise ValueError(f'invalid address "{source}": {EXPECTED}') from None


def default(environment: Mapping[str, str] = os.environ) -> Address:
    """The address of this job's sidecar, else of the first job that answers on this machine."""
    name, text = _address.setting(environment)
    if text and text != _address.NOWHERE:
        return _address.of_setting(name, text)
    first = _address.parse(_address.DEFAULT)
    for port in (first.port, *MORE_PORTS):
        candidate = Address(first.host, port)
        try:
            progress(candidate)
        except ConnectionError:
            continue
        return candidate
    return first


def url(address: Address) -> str:
    """The address as people write it."""
    if address.path is not None:
        return f"unix:{address.path}"
    host = f"[{address.host}]" if ":" in address.host else address.host
    return f"http://{host}:{address.port}/"


def progress(address: Address) -> dict[str, Any]:
    """What the job has reached; raises `ConnectionError`."""
    return get(address, "/v1/progress")


def past(address: Address) -> dict[str, Any]:
    """The past of the job; raises `ConnectionError`."""
    return get(address, "/v1/history")


def get(address: Address, path: str) -> dict[str, Any]:
    """An object of the endpoint. Every failure is a `ConnectionError` that says what to do."""
    what = f"cannot read {path} of {url(address)}"
    try:
        status, body = _get(address, path)
    except (OSError, http.client.HTTPException) as failure:
        raise ConnectionError(f"{what}: {_cause(failure)}; {START}") from None
    if status == 404:
        raise ConnectionError(
            f"{what}: it has no such path; the job's Paceline is older, or lacks the feature `page`"
        )
    if status != 200:
        raise ConnectionError(
            f"{what}: status {status}; check that a job of Paceline listens there"
        )
    try:
        value = json.loads(body)
    except ValueError:
        value = None
    if not isinstance(value, dict) or "schema" not in value:
        raise ConnectionError(f"{what}: the answer is not Paceline's JSON; check the address")
    return cast("dict[str, Any]", value)


def _get(address: Address, path: str) -> tuple[int, bytes]:
    opened = connection(address)
    try:
        opened.request("GET", path)
        answer = opened.getresponse()
        body = answer.read(MAX_BYTES + 1)
        if len(body) > MAX_BYTES:
            raise http.client.HTTPException(f"the answer is longer than {MAX_BYTES} bytes")
        return answer.status, body
    finally:
        opened.close()


def _cause(failure: Exception) -> str:
    """The cause in a few words."""
    text: Optional[str] = failure.strerror if isinstance(failure, OSError) else None
    return (text or str(failure) or type(failure).__name__).lower()


def _socket_or_file(path: str) -> Union[Address, str]:
    try:
        if stat.S_ISSOCK(os.stat(path).st_mode):
            return Address("localhost", 0, os.path.abspath(path))
    except OSError:
        # The caller opens the file, and its error names the cause.
        pass
    return path
