# SPDX-License-Identifier: Apache-2.0
"""What runs in an actor of Ray."""

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
_ACCEPT_SECONDS = 60.0  # that the trainer may take until it has connected
_PROOF_SECONDS = 5.0


class RayWorker:
    """Makes the batches that it is asked for: by a connection to the trainer, or else by calls of Ray's, which calls
    `make` in several threads: as many as there are batches on their way, so that all of them are being read, while few
    are made."""

    def __init__(self) -> None:
        self._beginning, self._making = threading.Lock(), threading.Semaphore(AT_ONCE)
        self._maker: BatchMaker
        self._server: socket.socket

    def open(self, version: str, payload: bytes) -> tuple[str, dict[str, Any], int]:
        """What is wrong, what has to be the same at the trainer, and the pid."""
        error, described, maker = opened(version, payload)
        if maker is not None:
            self._maker = maker
        return error, described, os.getpid()

    def listen(self, machine: str) -> Address | None:
        """Where a trainer on that machine, which is one of Ray's nodes, can connect to; None if nowhere. It is never an
        address that can be reached from the internet."""
        ray = import_module("ray")
        where: Any
        if machine == ray.get_runtime_context().get_node_id():
            family, where = socket.AF_UNIX, f"\0penstock-{secrets.token_hex(16)}"  # without a file
        else:
            ip = ray.util.get_node_ip_address()
            if ipaddress.ip_address(ip).is_global:
                return None
            family, where = (socket.AF_INET6 if ":" in ip else socket.AF_INET), (ip, 0)
        self._server = socket.socket(family, socket.SOCK_STREAM)
        try:
            self._server.bind(where)
        except OSError:  # it is not this machine's, but that of what stands before it
            self._server.close()
            return None
        self._server.listen()
        return int(family), self._server.getsockname()

    def serve(self, token: bytes) -> None:
        """Makes batches until the trainer, which has the token, hangs up."""
        with self._server:
            sock = accepted(self._server, token)
        with sock:
            is_here = sock.family == socket.AF_UNIX
            try:
                serve(sock, self._maker, SharedMemory(_memory_of(sock)) if is_here else OverTheWire())
            except (EOFError, OSError):
                pass

    def make(self, order: Order) -> tuple[Answer, list[tuple[int, np.ndarray]]]:
        """The answer, and the memory of its outputs: where each part begins, as the answer counts."""
        with self._beginning:
            begun = self._maker.begin(order)
        with self._making:
            out = OwnMemory()
            answer = self._maker.finish(begun, out)
            return answer, [(at, array) for (at, _), array in zip(out.parts, out.arrays)]


def accepted(server: socket.socket, token: bytes) -> socket.socket:
    """The connection of who has the token. Others are turned away. TimeoutError if nobody comes."""
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
    """The descriptor of the memory that the trainer shares."""
    _, fds, *_ = socket.recv_fds(sock, 1, 1)
    if not fds:
        raise EOFError
    return fds[0]
