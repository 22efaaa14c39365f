# SPDX-License-Identifier: Apache-2.0
"""What kernels say of samples: known when the GPU is through, so that nothing waits for it before."""

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
_KEPT_SETS = 8  # of memory: about as many as batches are under way
_MUCH, _SMALL = 2, 1 << 20  # times what is needed, and bytes


class Memory:
    """The memory of batches that are through: taken again, it needs no pool, which would have to ask whether it is.
    A pipeline with a limit keeps none."""

    def __init__(self, most: int = 0):
        self._idle: IdlePool[None, tuple[Block, Block]] = IdlePool(most)

    @classmethod
    def of(cls, session: Session, number: int) -> Memory:
        """That of a node."""
        return session.keep(f"JPEG of {number}", cls, lambda: cls(_KEPT_SETS if session.budget.limit is None else 0))

    def take(self, gpu: GpuPass, pinned: int, nbytes: int) -> tuple[Block, Block]:
        """So many bytes, pinned and on the GPU."""
        idle = self._idle.take(None)
        if idle is None:
            return gpu.pinned(pinned), gpu.take(nbytes)
        host, block = idle
        # Much more than is needed goes back to the pool, too.
        if not (pinned <= host.size <= _MUCH * pinned + _SMALL and nbytes <= block.size <= _MUCH * nbytes + _SMALL):
            return gpu.pinned(pinned), gpu.take(nbytes)
        host.used_on(gpu.stream)
        block.used_on(gpu.stream)
        return host, block

    def give(self, host: Block, block: Block) -> None:
        """Those that nothing uses any more."""
        self._idle.give(None, (host, block))

    def close(self) -> None:
        self._idle.close()

    def decoded(self) -> dict[str, int]:
        return {}


class DeferredErrors(NamedTuple):
    """What the GPU says of n pictures that it decodes between two timed events: in the end, the bytes at `address` are
    not 0 where the data was irregular."""

    address: int
    n: int
    begin: Event
    end: Event
    memory: tuple[Block, ...]  # which nothing else uses: pinned, on the GPU, and more there
    kept: Memory  # takes it back
    stream: Stream
    work: int  # of the stream, that was asked for before

    def wait(self, later: Event | None = None) -> np.ndarray | None:
        """Blocks until it is known which pictures (n,) were irregular, and until a later event of the stream; None:
        none was."""
        code = kernels.library().wait_for_statuses((later or self.end).handle, self.address, self.n)
        check(max(code, 0), "waiting for the GPU")
        self.end.passed = True
        self.stream.reached(self.work)
        irregular = np.frombuffer(ctypes.string_at(self.address, self.n), _BYTE) != 0 if code else None
        for block in self.memory:
            block.is_idle()
        self.kept.give(*self.memory[:2])
        return irregular
