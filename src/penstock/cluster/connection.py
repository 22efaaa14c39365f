# SPDX-License-Identifier: Apache-2.0
"""The trainer's end of a connection to a worker: sends orders, receives answers, and manages the memory of batches."""

from __future__ import annotations

import mmap
import os
import socket
import threading
from typing import Any, Protocol

import numpy as np

from ..core.batch import Batch
from ..core.memory import Buffer, view
from ..external import arena
from . import wire
from .messages import Answer, Order
from .packing import unpack

_SLACK = mmap.PAGESIZE  # kernels may read a little beyond a sample


class Incoming(Protocol):
    """How the data of batches is received."""

    def place(self, number: int) -> Any:
        """The destination to send to the worker with the order `number`."""

    def receive(self, sock: socket.socket, answer: Answer) -> list[Batch] | None:
        """The batches of an answer; None if it has none."""

    def close(self) -> None: ...


class Shared:
    """In memory shared with the worker, without copies. `fd` is the memory's descriptor; `pin` registers it as pinned
    memory if a GPU reads it."""

    def __init__(self, pin: arena.Pin | None = None) -> None:
        self.fd = arena.create(1)
        self._regions = arena.Regions(self.fd, pin)
        self._lock = threading.Lock()
        self._leases: dict[int, arena.Lease] = {}
        self._nbytes = 0  # size of the largest batch so far

    def place(self, number: int) -> tuple[int, int]:
        with self._lock:
            if self.fd < 0:
                raise OSError("the connection is closed")
            try:
                lease = self._leases[number] = self._regions.take(self._nbytes)
            except OSError as e:  # an error of this end, not of the worker
                raise MemoryError(f"no shared memory for {self._nbytes} bytes of samples: {e.strerror}") from None
        return lease.region.offset, lease.region.capacity

    def receive(self, sock: socket.socket, answer: Answer) -> list[Batch] | None:
        with self._lock:
            lease = self._leases.pop(answer.number)
            self._nbytes = max(self._nbytes, answer.nbytes)
            spilled = [arena.Spilled(self.fd, *s) for s in answer.spilled]
        if answer.outputs is None:
            return None
        regions = [lease.region, *(s.region for s in spilled)]
        parts = [(r.offset, r.capacity, r.address) for r in regions]
        return unpack(answer.outputs, answer.names, parts, (lease, *spilled))

    def close(self) -> None:
        with self._lock:
            if self.fd >= 0:
                os.close(self.fd)
                self.fd = -1
            self._leases.clear()
            self._regions.close()


class Streamed:
    """On the connection, after the answer."""

    def place(self, number: int) -> None:
        return None

    def receive(self, sock: socket.socket, answer: Answer) -> list[Batch] | None:
        parts, buffers = [], []
        for at, nbytes in answer.spilled:
            buffer = Buffer(nbytes + _SLACK)
            wire.fill(sock, view(buffer.address, (nbytes,), np.dtype("u1"), buffer))
            parts.append((at, nbytes, buffer.address))
            buffers.append(buffer)
        return None if answer.outputs is None else unpack(answer.outputs, answer.names, parts, tuple(buffers))

    def close(self) -> None: ...


class Connection:
    """All methods but `shutdown` and `close` raise OSError or EOFError if the other end is gone."""

    def __init__(self, sock: socket.socket, incoming: Incoming):
        self._sock, self._incoming = sock, incoming

    def send(self, order: Order) -> None:
        wire.send(self._sock, (order, self._incoming.place(order.number)))

    def receive(self) -> tuple[Answer, Any]:
        answer: Answer = wire.receive(self._sock)
        return answer, self._incoming.receive(self._sock, answer)

    def shutdown(self) -> None:
        """Makes the other methods raise, also in other threads."""
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def close(self) -> None:
        self._sock.close()
        self._incoming.close()
