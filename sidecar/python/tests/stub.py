"""A stand-in for the sidecar, and a way to run a program beside it."""

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

# Only what hangs takes so many seconds.
LIMIT = 60.0
# Before a program: its end waits as long for the last reports.
PATIENT = f"import paceline; paceline.flush.__defaults__ = ({LIMIT},)\n"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Over a Unix socket it must not ask who the peer is.
    client_address = ("local", 0)

    def do_POST(self) -> None:
        stub = self.server.stub  # type: ignore[attr-defined]
        body = self.rfile.read(int(self.headers["Content-Length"]))
        stub.hold.wait()
        stub.requests.append((self.path, dict(self.headers), body))
        stub.connections.add(self.connection)
        status, said = stub.answer
        if stub.refuses in body:
            status, said = 400, b"no"
        if status < 300:
            stub.reports.extend(json.loads(line) for line in body.splitlines())
        self.send_response(status)
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Quiet(socketserver.ThreadingMixIn):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that does not wait for its answer is no news."""


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
        self.requests: list[tuple[str, dict[str, str], bytes]] = []
        self.connections: set[socket.socket] = set()
        self.answer = (204, b"")
        # What it does not want to hear.
        self.refuses = b"refused"
        # Cleared, it keeps everybody waiting.
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
    """Waits for something that comes at once, unless all hangs."""
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
    program: str, address: str, in_a_hurry: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs a program in a process of its own, as the state of a process is what is tested.

    On a busy machine the last reports may take longer than the end of a process waits for them: it
    waits longer here, unless it is `in_a_hurry`.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("PACELINE_")}
    kept.pop("RANK", None)
    variables = {**kept, "PYTHONPATH": str(SOURCE), "PACELINE_LISTEN": address, **environment}
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(program if in_a_hurry else PATIENT + program)
        file.flush()
        return subprocess.run(
            [sys.executable, file.name],
            env=variables,
            timeout=LIMIT,
            capture_output=True,
            text=True,
        )
