# SPDX-License-Identifier: Apache-2.0
"""The code that runs in a Ray actor."""

from __future__ import annotations

import ipaddress
import os
import secrets
import socket
import threading
import time
from importlib import import_module
from typing import Any

import numpy as np

from . import wire
from .batch_maker import BatchMaker
from .messages import Answer, Order
from .worker import OverTheWire, OwnMemory, SharedMemory, opened, serve
from .worker_pool import AT_ONCE

Address = tuple[int, Any]  # family and address of a socket
_ACCEPT_SECONDS = 60.0  # maximum time until the trainer connects
_PROOF_SECONDS = 5.0


class RayWorker:
    """Makes batches: requested over a connection to the trainer, or else by Ray calls of `make` in several threads: one
    per batch in flight, so that all are being read while only few are computed."""

    def __init__(self) -> None:
        self._beginning, self._making = threading.Lock(), threading.Semaphore(AT_ONCE)
        self._maker: BatchMaker
        self._server: socket.socket

    def open(self, version: str, payload: bytes) -> tuple[str, dict[str, Any], int]:
        """Returns an error text, what must be equal at the trainer, and the pid."""
        error, described, maker = opened(version, payload)
        if maker is not None:
            self._maker = maker
        return error, described, os.getpid()

    def listen(self, machine: str) -> Address | None:
        """Opens a server socket and returns the address that a trainer on the Ray node `machine` can connect to; None
        if there is none. Never an address that is reachable from the internet."""
        ray = import_module("ray")
        where: Any
        if machine == ray.get_runtime_context().get_node_id():
            family, where = socket.AF_UNIX, f"\0penstock-{secrets.token_hex(16)}"  # abstract socket, without a file
        else:
            ip = ray.util.get_node_ip_address()
            if ipaddress.ip_address(ip).is_global:
                return None
            family, where = (socket.AF_INET6 if ":" in ip else socket.AF_INET), (ip, 0)
        self._server = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._server.bind(where)
        except OSError:  # not this machine's address, but that of a gateway
            self._server.close()
            return None
        self._server.listen()
        return int(family), self._server.getsockname()

    def serve(self, token: bytes) -> None:
        """Makes batches until the trainer, which must have the token, hangs up."""
        with self._server:
            sock = accepted(self._server, token)
        with sock:
            is_here = sock.family == socket.AF_UNIX
            try:
                serve(sock, self._maker, SharedMemory(_memory_of(sock)) if is_here else OverTheWire())
            except (EOFError, OSError):
                pass

    def make(self, order: Order) -> tuple[Answer, list[tuple[int, np.ndarray]]]:
        """The answer, and the memory of its outputs with the offset of each part, as the answer counts."""
        with self._beginning:
            begun = self._maker.begin(order)
        with self._making:
            out = OwnMemory()
            answer = self._maker.finish(begun, out)
            return answer, [(at, array) for (at, _), array in zip(out.parts, out.arrays)]


def accepted(server: socket.socket, token: bytes) -> socket.socket:
    """The first connection that has the token; others are closed. TimeoutError if there is none in time."""
    end = time.monotonic() + _ACCEPT_SECONDS
    while True:
        server.settimeout(max(end - time.monotonic(), 0.01))
        sock, _ = server.accept()
        try:
            wire.prove(sock, token, b"worker", b"trainer", _PROOF_SECONDS)
            return sock
        except (OSError, EOFError):
            sock.close()


def _memory_of(sock: socket.socket) -> int:
    """The descriptor of the memory shared by the trainer."""
    _, fds, *_ = socket.recv_fds(sock, 1, 1)
    if not fds:
        raise EOFError
    return fds[0]
