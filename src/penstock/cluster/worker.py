# SPDX-License-Identifier: Apache-2.0
"""What runs in a worker process of this machine."""

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
from typing import Any

import numpy as np

from ..external import arena
from ..external.worker import _wait_for_end
from . import wire
from .crew import AT_ONCE
from .making import Begun, Maker
from .packing import Block

_MAX_TEXT = 4000


def main(sock_fd: int, arena_fd: int, parent: int) -> None:
    """Makes batches until the trainer hangs up or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_wait_for_end, args=(parent,), name="penstock-parent", daemon=True).start()
    sock = socket.socket(fileno=sock_fd)
    try:
        _work(sock, arena_fd)
    except (EOFError, OSError):
        pass
    os._exit(0)  # whatever its threads are doing


def _work(sock: socket.socket, arena_fd: int) -> None:
    version, payload = wire.receive(sock)
    try:
        maker = opened(version, payload)
        described = maker.described()
    except BaseException as e:
        text = str(e) if isinstance(e, VersionDiffers) else f"{type(e).__name__}: {e}\n{traceback.format_exc()}"
        wire.send(sock, (text[-_MAX_TEXT:], {}))
        return
    wire.send(sock, ("", described))
    memory, lock = arena.WorkerMemory(arena_fd, 0), threading.Lock()
    todo: queue.SimpleQueue[tuple[Begun, int, int]] = queue.SimpleQueue()
    sending = threading.Lock()

    def run() -> None:
        while True:
            begun, offset, capacity = todo.get()
            out = _Output(memory, lock, offset, capacity)
            answer = maker.finish(begun, out)._replace(spilled=out.spilled, nbytes=out.nbytes)
            del begun
            try:
                with sending:
                    wire.send(sock, answer)
            except OSError:
                os._exit(0)
            del out, answer

    for i in range(AT_ONCE):
        threading.Thread(target=run, name=f"penstock-batch{i}", daemon=True).start()
    while True:
        order, offset, capacity = wire.receive(sock)
        todo.put((maker.begin(order), offset, capacity))


class VersionDiffers(Exception):
    pass


def opened(version: str, payload: bytes) -> Maker:
    """What makes batches of the pipeline in `payload`, once the versions are known to be the same."""
    here = sys.modules["penstock"].__version__
    if version != here:
        raise VersionDiffers(f"it has penstock {here}, this process {version}; install the same version for both")
    return pickle.loads(payload).open()


class _Output:
    """The region that one batch goes to, and what is taken where that is too small."""

    def __init__(self, memory: arena.WorkerMemory, lock: threading.Lock, offset: int, capacity: int):
        self._memory, self._lock, self._offset, self._capacity = memory, lock, offset, capacity
        self._at = 0
        self.spilled: list[tuple[int, int]] = []
        self.nbytes = 0

    def take(self, nbytes: int) -> Block:
        with self._lock:
            self.nbytes = arena.align(self.nbytes) + nbytes
            at = arena.align(self._at)
            if at + nbytes <= self._capacity - mmap.PAGESIZE:  # kernels may read a little beyond a sample
                self._at = at + nbytes
                self._memory.reserve(self._offset, self._at)
                return _block(self._memory.region(self._offset, self._capacity), at, nbytes, self._offset + at)
            offset, memory = self._memory.spill(nbytes)
            self._memory.reserve(offset, nbytes)
            self.spilled.append((offset, len(memory)))
            return _block(memory, 0, nbytes, offset)


def _block(memory: mmap.mmap, begin: int, nbytes: int, at: int) -> Block:
    view: Any = np.frombuffer(memory, "u1")
    return Block(view.ctypes.data + begin, nbytes, at, view)
