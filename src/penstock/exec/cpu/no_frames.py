# SPDX-License-Identifier: Apache-2.0
"""The extents that samples without frames have behind operators which see frames one by one."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import numpy as np

from ...core.batch import Batch, Spec
from ...core.tracing import IMMEDIATE
from ..context import Context

if TYPE_CHECKING:
    from .chain import Link
    from .wiring import Edge


class NoFrames:
    """Rules asked for one frame of each sample that has none. Nothing is computed from it, and what the rules refuse is
    of no extent."""

    def __init__(self, counts: np.ndarray):
        self.empty = np.flatnonzero(counts == 0)
        self.counts = (counts == 0).astype("i8")
        self.specs: dict[Edge, Spec] = {}  # of one frame of each of them

    def take_in(self, e: Edge, batch: Batch) -> None:
        spec = batch.spec
        is_sequence = spec.layout.startswith("F")
        shape = spec.shape[self.empty]
        self.specs[e] = Spec(shape[:, is_sequence:], spec.dtype, spec.layout[is_sequence:])

    def add(self, link: Link, ctx: Context) -> None:
        if link.peeks or not all(e in self.specs for e in link.ins):
            return  # there is no data, or nothing is known of an input
        specs = [self.specs[e] for e in link.ins]
        with contextlib.suppress(Exception):  # what the rules refuse is no mistake of the samples that have frames
            a = link.resolver.resolve(ctx.n, ctx.epoch, ctx.position, ctx.values, self.counts)
            a.native, a.sample_of, a.batches = IMMEDIATE, self.empty.astype("i4"), [None] * len(specs)
            link.op.plan(a, *specs)
            outs = link.op.outputs(a, *specs)
            self.specs.update(zip(link.outs, outs if isinstance(outs, tuple) else (outs,)))

    def shapes(self, e: Edge) -> np.ndarray | None:
        """Those of the frames; None if they are not known."""
        known = self.specs.get(e)
        return None if known is None else known.shape
