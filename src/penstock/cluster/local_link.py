# SPDX-License-Identifier: Apache-2.0
"""Workers that are processes of this machine. Batches are in shared memory (external/arena.py)."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from typing import Any

from ..external import failure, launch
from ..external.arena import Pin
from . import wire
from .connection import Connection, Shared
from .messages import Answer, Order
from .worker_link import WorkerLost, WorkerRefused

_EXIT_SECONDS = 1.0
# The worker runs only the functions that the pipeline names, not the user's program, so the program needs no `if
# __name__ == "__main__":`.
_START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from penstock.cluster.worker import main; "
    "main(*map(int, sys.argv[2:]))"
)


class LocalLink:
    """A worker process, its socket, and the memory for its batches."""

    def __init__(self, index: int, payload: bytes, expected: dict[str, Any], version: str, pin: Pin | None = None):
        self._pin = pin
        self.index, self._payload, self._expected, self._version = index, payload, expected, version
        self.name = f"worker {index}"
        self._process: subprocess.Popen | None = None
        self._connection: Connection | None = None
        self._hung_up = False
        self._lock = threading.Lock()

    def open(self) -> None:
        with self._lock:
            if self._hung_up:
                raise WorkerLost("was not started")
            memory = Shared(self._pin)
            sock, theirs = socket.socketpair()
            self._connection = Connection(sock, memory)
            launch.SOCKETS.add(sock)
            with theirs:
                path = json.dumps([os.path.abspath(p) for p in sys.path])
                numbers = (theirs.fileno(), memory.fd, os.getpid())
                self._process = subprocess.Popen(
                    [sys.executable, "-c", _START, path, *map(str, numbers)],
                    stdin=subprocess.DEVNULL,
                    pass_fds=numbers[:2],
                    start_new_session=True,  # Ctrl-C is handled by the trainer
                )
        self.name = f"worker {self.index} (pid {self._process.pid})"
        try:
            wire.send(sock, (self._version, self._payload))
            error, theirs_described = wire.receive(sock)
        except (OSError, EOFError):
            raise WorkerLost(self._how_it_ended()) from None
        if error:
            raise WorkerRefused(f"{self.name} can't make batches of this pipeline: {error}")
        check_described(self.name, self._expected, theirs_described)

    def send(self, order: Order) -> None:
        connection = self._connection
        if self._hung_up or connection is None:
            raise WorkerLost("was told to end")
        try:
            connection.send(order)
        except OSError:
            raise WorkerLost("hung up") from None

    def receive(self) -> tuple[Answer, Any]:
        assert self._connection is not None
        try:
            return self._connection.receive()
        except (OSError, EOFError):
            raise WorkerLost(self._how_it_ended()) from None

    def hang_up(self) -> None:
        with self._lock:
            self._hung_up = True
            if self._connection is not None:
                self._connection.shutdown()

    def end(self) -> None:
        if self._process is not None:
            try:
                self._process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        with self._lock:
            if self._connection is not None:
                self._connection.close()

    def _how_it_ended(self) -> str:
        """How the process ended; call after the connection broke."""
        code = None
        if self._process is not None and not self._hung_up:
            try:
                code = self._process.wait(_EXIT_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
        return f"({self.name}) {failure.how_it_ended(code)}"


def check_described(worker: str, ours: dict[str, Any], theirs: dict[str, Any]) -> None:
    """Raises WorkerRefused if the picks would give other samples in the worker."""
    if ours == theirs:
        return
    differs = [k for k in ours if ours[k] != theirs.get(k)]
    raise WorkerRefused(
        f"{worker} finds other data than this process, so its batches would be others: {', '.join(differs)} differ; "
        f"here {[ours[k] for k in differs]}, there {[theirs.get(k) for k in differs]}. Its paths have to lead to "
        "the same files"
    )
