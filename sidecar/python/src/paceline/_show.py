"""Shows a job: in a notebook its page or a picture, elsewhere a line of text."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from html import escape
from typing import Any, Optional

from . import _endpoint, _history, _picture, _words
from ._address import Address
from ._endpoint import Source
from ._history import History
from ._sender import log

# Seconds between two pictures.
REFRESH = 2.0
# Seconds without an answer after which a picture is no longer updated.
MAX_SILENCE = 60.0
# Hosts that lead to the machine of the kernel, and to that of the browser where both are the same.
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# Variables of places whose browser is on another machine than the kernel.
REMOTE = (
    "CODESPACES",
    "COLAB_RELEASE_TAG",
    "DATABRICKS_RUNTIME_VERSION",
    "JUPYTERHUB_SERVICE_PREFIX",
    "KAGGLE_KERNEL_RUN_TYPE",
    "KUBERNETES_SERVICE_HOST",
    "SAGEMAKER_INTERNAL_IMAGE_URI",
    "SSH_CONNECTION",
)
# The frame of a web view of VS Code may not show pages of this machine.
EMBEDDED = ("VSCODE_PID", "VSCODE_CWD", "VSCODE_IPC_HOOK_CLI")

# Files that a container of Docker or Podman has.
MARKS = ("/.dockerenv", "/run/.containerenv")

_lock = threading.Lock()
_updates: dict[Address, _Update] = {}


def show(
    address_or_path: Optional[Source] = None,
    *,
    picture: Optional[bool] = None,
    height: int = 720,
) -> None:
    """Shows a job: in a notebook its live page, elsewhere a line of text.

    `address_or_path` is as in `history`; by default it is the job of this machine. Where the browser
    cannot reach the job's port (JupyterHub, Colab, VS Code, SSH, containers), a notebook shows a
    picture that is drawn again every two seconds until the job ends. `picture` chooses: `True` for the
    picture, `False` for the page. `height` is that of the page in pixels.

    A job that does not answer is named, not raised, so that a training goes on. Raises `ValueError` for
    an invalid address, and `OSError` or `ValueError` for a file that cannot be read.
    """
    found = _endpoint.default() if address_or_path is None else _endpoint.locate(address_or_path)
    notebook = in_notebook()
    if isinstance(found, str):
        past, progress = _history.history(found), _progress_of_file(found)
        if notebook:
            _display(_bundle(past, progress))
        else:
            print(_words.line(progress))
        return
    try:
        progress = _endpoint.progress(found)
        if not notebook:
            print(f"{_words.line(progress)}\n{_endpoint.url(found)}")
        elif is_reachable(found) if picture is None else not picture and found.path is None:
            _display(_frame(found, progress, height))
        else:
            _show_picture(found, progress)
    except ConnectionError as failure:
        print(f"paceline: {failure}", file=sys.stderr)


def in_notebook() -> bool:
    """Whether output is shown by a browser: the kernel of a notebook runs this process."""
    # Without IPython imported this cannot be one.
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def is_reachable(address: Address, environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the browser most likely reaches the address, and may show its page in a frame."""
    if address.path is not None or address.host not in LOOPBACK:
        return False
    if "google.colab" in sys.modules or any(environment.get(name) for name in (*REMOTE, *EMBEDDED)):
        return False
    # The loopback of a container is not that of the browser.
    return not any(os.path.exists(mark) for mark in MARKS)


def _progress_of_file(path: str) -> dict[str, Any]:
    """What a status file says; of other files, what their last point says."""
    try:
        with open(path, "rb") as file:
            value = json.loads(file.read(_endpoint.MAX_BYTES))
        if isinstance(value, dict) and isinstance(value.get("eval"), dict):
            return value
    except ValueError:
        pass
    past = _history.history(path)
    losses = _history.finite(past["loss"])
    return {
        "job": os.path.basename(path),
        "state": "recorded",
        "step": _last(past["step"]),
        "eval": {"value": losses[-1] if losses else None},
        "validation": {"value": _last(past["validation"])},
        "batch_latency": {"p50": _last(past["batch_p50"])},
    }


def _last(column: list[Optional[float]]) -> Optional[float]:
    return next((value for value in reversed(column) if value is not None), None)


def _bundle(past: History, progress: dict[str, Any]) -> dict[str, str]:
    return {"image/svg+xml": _picture.draw(past, progress), "text/plain": _words.line(progress)}


def _frame(address: Address, progress: dict[str, Any], height: int) -> dict[str, str]:
    # The page lets itself be framed by pages of localhost and 127.0.0.1, on any port.
    url = escape(_endpoint.url(address), quote=True)
    frame = (
        f'<iframe src="{url}" title="{escape(_words.line(progress), quote=True)}" '
        f'style="width:100%;height:{int(height)}px;border:0" referrerpolicy="no-referrer"></iframe>'
        f'<div><small><a href="{url}" target="_blank" rel="noopener">{url}</a> · if the frame stays '
        "empty: <code>paceline.show(picture=True)</code></small></div>"
    )
    return {"text/html": frame, "text/plain": _words.line(progress)}


def _display(
    bundle: dict[str, str], display_id: Optional[str] = None, update: bool = False
) -> None:
    from IPython.display import publish_display_data

    # Older front ends know no transient data.
    transient = {} if display_id is None else {"display_id": display_id}
    publish_display_data(bundle, transient=transient, update=update)


def _show_picture(address: Address, progress: dict[str, Any]) -> None:
    """A picture that a thread draws again until the job ends. An address has one such thread.

    Raises `ConnectionError`; then an earlier picture of the job is still updated.
    """
    update = _Update(address)
    update.draw(progress, first=True)
    with _lock:
        update.start()
        before, _updates[address] = _updates.get(address), update
    if before is not None:
        before.stopped.set()


class _Update(threading.Thread):
    """Draws a displayed picture again and again."""

    def __init__(self, address: Address) -> None:
        super().__init__(name="paceline-picture", daemon=True)
        self.stopped = threading.Event()
        self._address = address
        self._id = f"paceline-{os.getpid()}-{id(self)}"

    def draw(self, progress: dict[str, Any], first: bool = False) -> None:
        """Shows what the job says now. Raises `ConnectionError`."""
        past = _history.of_object(_endpoint.past(self._address))
        _display(_bundle(past, progress), self._id, update=not first)

    def run(self) -> None:
        answered = time.monotonic()
        while not self.stopped.wait(REFRESH):
            try:
                progress = _endpoint.progress(self._address)
                self.draw(progress)
            except ConnectionError:
                if time.monotonic() - answered > MAX_SILENCE:
                    break
                continue
            except Exception as failure:
                log.debug("a picture is no longer drawn: %r", failure)
                break
            answered = time.monotonic()
            if progress.get("state") in ("finished", "failed"):
                break
        with _lock:
            if _updates.get(self._address) is self:
                del _updates[self._address]
