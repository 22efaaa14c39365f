# SPDX-License-Identifier: Apache-2.0
"""The code that runs in a worker, at the other end of a connection to the trainer."""

from __future__ import annotations

import mmap
import os
import pickle
import queue
import signal
import socket
import sys
import threading
import traceback
from typing import Any, Protocol

import numpy as np

from ..core.memory import Buffer, view
from ..external import arena
from ..external.worker import _wait_for_end
from . import wire
from .batch_maker import BatchMaker, Begun
from .packing import Block
from .worker_pool import AT_ONCE

_MAX_TEXT = 4000
_SLACK = mmap.PAGESIZE  # kernels may read a little beyond a sample


def main(sock_fd: int, arena_fd: int, parent: int) -> None:
    """Main function of a worker process: makes batches until the trainer hangs up or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(parent,), name="penstock-parent", daemon=True).start()
    sock = socket.socket(fileno=sock_fd)
    try:
        version, payload = wire.receive(sock)
        error, described, maker = opened(version, payload)
        wire.send(sock, (error, described))
        if maker is not None:
            serve(sock, maker, SharedMemory(arena_fd))
    except (EOFError, OSError):
        pass
    os._exit(0)  # without waiting for its threads


def opened(version: str, payload: bytes) -> tuple[str, dict[str, Any], BatchMaker | None]:
    """Returns an error text, what must be equal at the trainer, and the BatchMaker of the pipeline in `payload`. The
    payload is not unpickled unless the versions are equal."""
    here = sys.modules["penstock"].__version__
    if version != here:
        return f"it has penstock {here}, this process {version}; install the same version for both", {}, None
    try:
        maker = pickle.loads(payload).open()
        return "", maker.described(), maker
    except BaseException as e:
        return f"{type(e).__name__}: {e}\n{traceback.format_exc()}"[-_MAX_TEXT:], {}, None


class Output(Protocol):
    """Memory for one batch. `parts`: what the trainer must know about it."""

    parts: list[tuple[int, int]]
    nbytes: int

    def take(self, nbytes: int) -> Block: ...

    def send(self, sock: socket.socket) -> None:
        """Sends data that the trainer can't read directly, after the answer."""


class Outgoing(Protocol):
    def output(self, place: Any) -> Output:
        """The Output for one batch; `place` is the destination sent by the trainer."""


def serve(sock: socket.socket, maker: BatchMaker, outgoing: Outgoing) -> None:
    """Makes batches until the trainer hangs up; then raises EOFError or OSError."""
    todo: queue.SimpleQueue[tuple[Begun, Any] | None] = queue.SimpleQueue()
    sending = threading.Lock()

    def run() -> None:
        while (task := todo.get()) is not None:
            begun, place = task
            out = outgoing.output(place)
            answer = maker.finish(begun, out)._replace(spilled=out.parts, nbytes=out.nbytes)
            del begun, task
            try:
                with sending:
                    wire.send(sock, answer)
                    out.send(sock)
            except OSError:
                return  # the receiving thread also gets an error
            del out, answer

    for i in range(AT_ONCE):
        threading.Thread(target=run, name=f"penstock-batch{i}", daemon=True).start()
    try:
        while True:
            order, place = wire.receive(sock)
            todo.put((maker.begin(order), place))
    finally:
        for _ in range(AT_ONCE):
            todo.put(None)


class SharedMemory:
    """Memory shared with the trainer."""

    def __init__(self, fd: int):
        self._memory, self._lock = arena.WorkerMemory(fd, 0), threading.Lock()

    def output(self, place: tuple[int, int]) -> _Shared:
        return _Shared(self._memory, self._lock, *place)


class _Shared:
    """The region for one batch, and further regions if that is too small."""

    def __init__(self, memory: arena.WorkerMemory, lock: threading.Lock, offset: int, capacity: int):
        self._memory, self._lock, self._offset, self._capacity = memory, lock, offset, capacity
        self._at = 0
        self.parts: list[tuple[int, int]] = []
        self.nbytes = 0

    def take(self, nbytes: int) -> Block:
        with self._lock:
            self.nbytes = arena.align(self.nbytes) + nbytes
            at = arena.align(self._at)
            if at + nbytes <= self._capacity - _SLACK:
                self._at = at + nbytes
                self._memory.reserve(self._offset, self._at)
                return _block(self._memory.region(self._offset, self._capacity), at, nbytes, self._offset + at)
            offset, memory = self._memory.spill(nbytes)
            self._memory.reserve(offset, nbytes)
            self.parts.append((offset, len(memory)))
            return _block(memory, 0, nbytes, offset)

    def send(self, sock: socket.socket) -> None: ...


def _block(memory: mmap.mmap, begin: int, nbytes: int, at: int) -> Block:
    view: Any = np.frombuffer(memory, "u1")
    return Block(view.ctypes.data + begin, nbytes, at, view)


class OverTheWire:
    """Memory of this process, whose content is sent."""

    def output(self, place: Any) -> OwnMemory:
        return OwnMemory()


class OwnMemory:
    """Memory of this process for one batch: byte `arrays`, and the offset of each, as the answer counts."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, int]] = []
        self.arrays: list[np.ndarray] = []
        self.nbytes = 0

    def take(self, nbytes: int) -> Block:
        buffer, at = Buffer(nbytes + _SLACK), self.nbytes
        self.nbytes += nbytes + _SLACK
        self.parts.append((at, nbytes))
        self.arrays.append(view(buffer.address, (nbytes + _SLACK,), np.dtype("u1"), buffer))
        return Block(buffer.address, nbytes, at, buffer)

    def send(self, sock: socket.socket) -> None:
        for (_, nbytes), array in zip(self.parts, self.arrays):
            sock.sendall(array[:nbytes].data)
