# SPDX-License-Identifier: Apache-2.0
"""What runs in an actor of Ray."""

from __future__ import annotations

import mmap
import os
import threading
import traceback
from typing import Any

import numpy as np

from ..core.memory import Buffer, view
from .crew import AT_ONCE
from .order import Answer, Order
from .packing import Block
from .worker import _MAX_TEXT, VersionDiffers, opened

_SLACK = mmap.PAGESIZE  # kernels may read a little beyond a sample


class RayWorker:
    """Makes the batches that it is asked for. Ray calls `make` in several threads: as many as there are batches on
    their way, so that all of them are being read, while few are made."""

    def __init__(self) -> None:
        self._beginning, self._making = threading.Lock(), threading.Semaphore(AT_ONCE)

    def open(self, version: str, payload: bytes) -> tuple[str, dict[str, Any], int]:
        """What is wrong, what has to be the same at the trainer, and the pid."""
        try:
            self._maker = opened(version, payload)
            return "", self._maker.described(), os.getpid()
        except BaseException as e:
            text = str(e) if isinstance(e, VersionDiffers) else f"{type(e).__name__}: {e}\n{traceback.format_exc()}"
            return text[-_MAX_TEXT:], {}, os.getpid()

    def make(self, order: Order) -> tuple[Answer, list[tuple[int, np.ndarray]]]:
        """The answer, and the memory of its outputs: where each part begins, as the answer counts."""
        with self._beginning:
            begun = self._maker.begin(order)
        with self._making:
            out = _Output()
            return self._maker.finish(begun, out), out.parts


class _Output:
    """Memory for one batch. Ray takes it away as it is."""

    def __init__(self) -> None:
        self.parts: list[tuple[int, np.ndarray]] = []
        self._next = 0

    def take(self, nbytes: int) -> Block:
        buffer, at = Buffer(nbytes + _SLACK), self._next
        self._next += nbytes + _SLACK
        self.parts.append((at, view(buffer.address, (nbytes + _SLACK,), np.dtype("u1"), buffer)))
        return Block(buffer.address, nbytes, at, buffer)
