# SPDX-License-Identifier: Apache-2.0
"""Errors that kernels report for samples: read when the GPU is done, so that nothing waits for them earlier."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from ..core import kernels
from ..core.idle_pool import IdlePool
from .driver import check
from .memory import Block
from .session import GpuPass, Session
from .stream import Event, Stream

_BYTE = np.dtype("u1")
_KEPT_SETS = 8  # sets of memory kept: about the number of batches in flight
_MUCH, _SMALL = 2, 1 << 20  # a block is reused if it has at most _MUCH times the needed bytes plus _SMALL


class Memory:
    """Memory of finished batches, for reuse without the pool, which would have to query the GPU. Pipelines with a
    memory limit keep none."""

    def __init__(self, most: int = 0):
        self._idle: IdlePool[None, tuple[Block, Block]] = IdlePool(most)

    @classmethod
    def of(cls, session: Session, number: int) -> Memory:
        """The Memory of a node."""
        return session.keep(f"JPEG of {number}", cls, lambda: cls(_KEPT_SETS if session.budget.limit is None else 0))

    def take(self, gpu: GpuPass, pinned: int, nbytes: int) -> tuple[Block, Block]:
        """Returns blocks of at least these sizes: pinned, and on the GPU."""
        idle = self._idle.take(None)
        if idle is None:
            return gpu.pinned(pinned), gpu.take(nbytes)
        host, block = idle
        # Blocks that are much larger than needed go back to the pool.
        if not (pinned <= host.size <= _MUCH * pinned + _SMALL and nbytes <= block.size <= _MUCH * nbytes + _SMALL):
            return gpu.pinned(pinned), gpu.take(nbytes)
        host.used_on(gpu.stream)
        block.used_on(gpu.stream)
        return host, block

    def give(self, host: Block, block: Block) -> None:
        """Takes back blocks that nothing uses any more."""
        self._idle.give(None, (host, block))

    def close(self) -> None:
        self._idle.close()

    def decoded(self) -> dict[str, int]:
        return {}


class DeferredErrors(NamedTuple):
    """The pending results for n images that the GPU decodes between two timed events: afterwards, the bytes at
    `address` are nonzero for irregular data."""

    address: int
    n: int
    begin: Event
    end: Event
    memory: tuple[Block, ...]  # used by nothing else: pinned, GPU, and more GPU blocks
    kept: Memory  # takes the memory back
    stream: Stream
    work: int  # the stream's `work` when these were requested

    def wait(self, later: Event | None = None) -> np.ndarray | None:
        """Blocks until the results, and the event `later` of the same stream, are there. Returns a mask (n,) of
        irregular images; None if there are none."""
        code = kernels.library().wait_for_statuses((later or self.end).handle, self.address, self.n)
        check(max(code, 0), "waiting for the GPU")
        self.end.passed = True
        self.stream.reached(self.work)
        irregular = np.frombuffer(ctypes.string_at(self.address, self.n), _BYTE) != 0 if code else None
        for block in self.memory:
            block.is_idle()
        self.kept.give(*self.memory[:2])
        return irregular
