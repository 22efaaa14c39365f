# SPDX-License-Identifier: Apache-2.0
"""Puts the outputs of a batch into memory that the trainer can read; written there directly if the plan allows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from ..core.batch import Batch, Spec
from ..core.errors import InternalError
from ..core.kernels import Pool
from ..core.source_name import SourceNames


class Block:
    """Memory of a worker that the trainer can read; `at` is its offset for the trainer."""

    __slots__ = ("address", "at", "keeps", "nbytes")

    def __init__(self, address: int, nbytes: int, at: int, keeps: Any):
        self.address, self.nbytes, self.at, self.keeps = address, nbytes, at, keeps


class Memory(Protocol):
    """Allocates the outputs of one batch."""

    def take(self, nbytes: int) -> Block: ...


class Packed(NamedTuple):
    """One output: `at` is each sample's offset for the trainer, `names` the index of its list of names, or -1."""

    shape: np.ndarray
    dtype: np.dtype
    layout: str
    at: np.ndarray
    is_packed: bool
    is_read_only: bool
    names: int


class OfReader(NamedTuple):
    """Replaces the names of samples by the node of their reader, which the trainer has too, and their indices."""

    node: int
    indices: np.ndarray


Names = list[str] | OfReader


def pack(
    batches: Sequence[Batch], memory: Memory, pool: Pool, readers: dict[Any, int]
) -> tuple[list[Packed], list[Names]]:
    """Packs outputs, and the origins of their samples. Outputs in other memory are copied. `readers`: node numbers by
    the readers' method `source_name`."""
    packed: list[Packed] = []
    names: list[Names] = []
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
                names.append(_told(batch.sources, readers))
        spec = inside.spec
        packed.append(Packed(spec.shape, spec.dtype, spec.layout, at, inside.is_packed, batch.is_read_only, which))
    return packed, names


def _told(sources: Sequence[str], readers: dict[Any, int]) -> Names:
    if isinstance(sources, SourceNames) and (node := readers.get(sources.name)) is not None:
        return OfReader(node, sources.indices)
    return list(sources)


def with_names(batches: Sequence[Batch], reader: Callable[[int], Any]) -> Sequence[Batch]:
    """Sets the names of the samples of unpacked batches. `reader(node)` returns the reader."""
    for b in batches:
        if isinstance(b.sources, OfReader):
            b.sources = SourceNames(reader(b.sources.node).source_name, b.sources.indices)
    return batches


def unpack(
    packed: Sequence[Packed], names: Sequence[Any], parts: Sequence[tuple[int, int, int]], owners: tuple
) -> list[Batch]:
    """Unpacks outputs in the trainer. `parts` are the memory: offset as the worker counts, bytes, and address here;
    `owners` keep it alive. Call `with_names` afterwards."""
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
