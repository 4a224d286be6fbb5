"""A fake sidecar, a job that it serves, and a function that runs a program against it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any, Callable, Optional

SOURCE = Path(__file__).resolve().parent.parent / "src"
sys.path.insert(0, str(SOURCE))

# Timeout in seconds; only a hang takes so long.
LIMIT = 60.0
# Prepended to programs, so that their end waits that long for the last reports.
LONG_FLUSH = f"import paceline; paceline.flush.__defaults__ = ({LIMIT},)\n"


# A job in the middle of its training.
PROGRESS: dict[str, Any] = {
    "schema": 1,
    "job": "vae <b>&",
    "state": "running",
    "now": 1003.5,
    "step": 30,
    "total_steps": 120,
    "eval": {"name": "loss", "value": 0.25, "best": 0.2},
    "validation": {"value": 0.5},
    "batch_latency": {"p50": 0.04, "p95": 0.05, "p99": 0.06},
    "signals": {"activity": "training", "health": "fine", "eta_seconds": 90, "loss_smoothed": 0.3},
}
# Its past, in three points.
HISTORY: dict[str, Any] = {
    "schema": 1,
    "instance": "a",
    "started_at": 1000.0,
    "from": [1000.0, 1001.0, 1002.0],
    "to": [1001.0, 1002.0, 1003.0],
    "step": [10, 20, 30],
    "loss": [1.0, 0.5, 0.25],
    "loss_low": [0.9, 0.4, 0.2],
    "loss_high": [1.1, 0.6, 0.3],
    "loss_smoothed": [1.0, 0.7, 0.4],
    "validation": [None, None, 0.5],
    "batch_p50": [0.04, 0.04, None],
    "batch_p95": [0.05, 0.05, None],
    "batch_p99": [0.06, 0.06, None],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # A Unix socket has no peer address.
    client_address = ("local", 0)

    def do_GET(self) -> None:
        stub = self.server.stub  # type: ignore[attr-defined]
        stub.gets.append(self.path)
        value = stub.answers.get(self.path)
        body = b"unknown path" if value is None else json.dumps(value).encode()
        self.send_response(404 if value is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        stub = self.server.stub  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stub.hold.wait()
        if self.path == "/end":
            stub.ends()
        stub.requests.append((self.path, dict(self.headers), body))
        stub.connections.add(self.connection)
        status, answer = stub.answer
        if stub.refuses in body:
            status, answer = 400, b"no"
        if status < 300:
            for report in map(json.loads, body.splitlines()):
                stub.marks.append((report.pop("sender"), report.pop("number")))
                stub.reports.append(report)
        self.send_response(status)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Quiet(socketserver.ThreadingMixIn):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignores clients that do not wait for their answer."""


class TcpServer(Quiet, socketserver.TCPServer):
    allow_reuse_address = True


class UnixServer(Quiet, socketserver.UnixStreamServer):
    def get_request(self) -> Any:
        connection, _ = super().get_request()
        return connection, ("local", 0)


class Stub:
    """Listens on a free port, or on `port`, or on the Unix socket `path`."""

    def __init__(self, path: Optional[str] = None, port: int = 0) -> None:
        self.reports: list[dict[str, Any]] = []
        #: The sender and the number of each report.
        self.marks: list[tuple[int, int]] = []
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: set[socket.socket] = set()
        self.answer = (204, b"")
        # The objects that are read by GET, and the paths that were asked for.
        self.answers: dict[str, Any] = {}
        self.gets: list[str] = []
        # Called by a post to /end.
        self.ends: Callable[[], None] = lambda: None
        # Requests that contain this are rejected.
        self.refuses = b"refused"
        # While cleared, all requests wait.
        self.hold = threading.Event()
        self.hold.set()
        self.server: Any
        if path is None:
            self.server = TcpServer(("127.0.0.1", port), Handler)
            self.address = f"127.0.0.1:{self.server.server_address[1]}"
        else:
            self.server = UnixServer(path, Handler)
            self.address = f"unix:{path}"
        self.server.stub = self
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True)
        self.thread.start()

    def __enter__(self) -> Stub:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def wait(self, enough: Callable[[list[dict[str, Any]]], bool]) -> bool:
        return until(lambda: enough(self.reports))


def until(holds: Callable[[], bool]) -> bool:
    """Waits until `holds` returns true, up to `LIMIT` seconds."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.005)
    return False


def needs(*modules: str) -> Callable[[type[unittest.TestCase]], type[unittest.TestCase]]:
    """Skips the tests of frameworks that are not installed here."""
    missing = [module for module in modules if importlib.util.find_spec(module) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


def run(
    program: str, address: str, default_flush: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in its own process, because the state of a process is tested.

    On a busy machine the last reports may take longer than the end of a process waits for them.
    It waits longer here, unless `default_flush` is set.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PACELINE_")}
    kept.pop("RANK", None)
    variables = {**kept, "PYTHONPATH": str(SOURCE), "PACELINE_LISTEN": address, **environment}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program if default_flush else LONG_FLUSH + program)
        file.flush()
        return subprocess.run(
            [sys.executable, file.name],
            env=variables,
            timeout=LIMIT,
            capture_output=True,
            text=True,
        )
