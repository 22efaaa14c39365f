# SPDX-License-Identifier: Apache-2.0
"""The outputs of a batch in memory that the trainer sees, too: written there at once where the plan allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.batch import Batch, Spec
from ..core.errors import InternalError
from ..core.kernels import Pool


class Block:
    """Memory of a worker that the trainer sees, too: there it begins `at`."""

    __slots__ = ("address", "at", "keeps", "nbytes")

    def __init__(self, address: int, nbytes: int, at: int, keeps: Any):
        self.address, self.nbytes, self.at, self.keeps = address, nbytes, at, keeps


class Memory(Protocol):
    """Where the outputs of one batch go."""

    def take(self, nbytes: int) -> Block: ...


class Packed(NamedTuple):
    """One output: where each sample begins, as the trainer counts, and which of the lists of names is of it, or -1."""

    shape: np.ndarray
    dtype: np.dtype
    layout: str
    at: np.ndarray
    is_packed: bool
    is_read_only: bool
    names: int


def pack(batches: Sequence[Batch], memory: Memory, pool: Pool) -> tuple[list[Packed], list[list[str]]]:
    """The outputs, and where their samples come from. What lies elsewhere is copied."""
    packed: list[Packed] = []
    names: list[list[str]] = []
    known: dict[int, int] = {}
    for batch in batches:
        inside = batch
        if len(batch.owners) != 1 or not isinstance(batch.owners[0], Block):
            inside = batch.packed_copy(pool, memory.take)
        block = inside.owners[0]
        at = inside.rows["data"] - np.uint64(block.address) + np.uint64(block.at)
        which = -1
        if batch.sources is not None:
            which = known.setdefault(id(batch.sources), len(names))
            if which == len(names):
                names.append(list(batch.sources))
        spec = inside.spec
        packed.append(Packed(spec.shape, spec.dtype, spec.layout, at, inside.is_packed, batch.is_read_only, which))
    return packed, names


def unpack(
    packed: Sequence[Packed], names: Sequence[list[str]], parts: Sequence[tuple[int, int, int]], owners: tuple
) -> list[Batch]:
    """The outputs at the trainer. `parts` are the memory that they lie in: where it begins for the worker, its
    bytes, and its address here; `owners` keep it."""
    batches = []
    for p in packed:
        spec = Spec(p.shape, p.dtype, p.layout)
        rows = spec.packed()
        found = np.zeros(len(p.at), bool)
        for begin, nbytes, address in parts:
            inside = (p.at >= begin) & (p.at < begin + nbytes)
            rows["data"] = np.where(inside, p.at - np.uint64(begin) + np.uint64(address), rows["data"])
            found |= inside
        if not found.all():
            raise InternalError("a worker wrote outside of its memory")
        batch = Batch(spec, rows, owners, None if p.names < 0 else names[p.names])
        batch._packed = p.is_packed
        if p.is_read_only:
            batch.protect()
        batches.append(batch)
    return batches
