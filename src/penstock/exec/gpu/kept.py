# SPDX-License-Identifier: Apache-2.0
"""Plans of segments on the GPU that are kept. The rules of operators are functions of what a plan is found again by:
shapes, types and layouts of the inputs, and the contents of those that they may look into. Positions of samples are no
part of that: a plan of rules that have looked at them, by drawing a random number, say, is not kept."""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import Any

from ...core import kernels
from ..context import Context
from ..cpu.chain import Link
from ..cpu.wiring import Edge
from .plan import GpuPlan

# For each chain: so many bytes of images, so many plans; keys that were seen once; the longest key.
_KEPT_BYTES, _KEPT_PLANS = 32 << 20, 64
_SEEN = 256
_KEY_BYTES = 64 << 10


class _Seen(ctypes.Structure):
    _fields_ = [("rows", ctypes.c_void_p), ("n", ctypes.c_int64), ("contents", ctypes.c_int64)]


class Order:
    """The operators of a chain in an order in which they can run. Plans of those from `apart` on are not kept."""

    def __init__(self, number: int, links: list[Link], apart: int):
        self.number, self.links, self.apart = number, links, apart
        self._reads: dict[int, list[tuple[Edge, bool]]] = {}

    def end(self, at: int) -> int:
        """How far a segment that begins there may go."""
        return self.apart if at < self.apart else len(self.links)

    def reads(self, at: int) -> list[tuple[Edge, bool]]:
        """What the operators from a link on get from outside, and whether its contents may matter to their rules."""
        if at not in self._reads:
            links = self.links[at : self.end(at)]
            made = {e for link in links for e in link.outs}
            reads: dict[Edge, bool] = {}
            for link in links:
                for i, e in enumerate(link.ins):
                    if e not in made:
                        reads[e] = reads.get(e, False) or i in link.node.op.peeks
                for d in link.node.arg_nodes():
                    reads[d.source.number, d.index] = True
            self._reads[at] = list(reads.items())
        return self._reads[at]

    def known(self, ctx: Context, at: int) -> set[Edge]:
        """The edges whose contents are part of the key."""
        return {e for e, contents in self.reads(at) if contents and ctx.values[e].on_host}


class Kept:
    """The plans of one chain."""

    def __init__(self, links: list[Link]):
        self.order = Order(0, links, len(links))
        self._plans: dict[tuple, GpuPlan] = {}
        self._nbytes = 0
        self._seen: deque[int] = deque(maxlen=_SEEN)
        self._lock = threading.Lock()
        self._idle: list[Any] = []  # memory for keys
        self._links = links
        self._drawing = [link.resolver for link in links if link.draws]
        self._part = _parts(links)
        self._apart: set[int] = set()

    def key(self, ctx: Context, order: Order, at: int) -> tuple | None:
        """What a plan for the batch, of the operators from a link on, is found again by; None: it can't be."""
        if not ctx.n or at >= order.apart:
            return None
        reads, values = order.reads(at), ctx.values
        kind: list[Any] = [order.number, at, ctx.n, *(resolver.key for resolver in self._drawing)]
        seen = (_Seen * len(reads))()
        k = 0
        for e, contents in reads:
            batch = values[e]
            spec = batch.spec
            if spec.stored is not spec.shape:
                return None
            kind += spec.shape.shape, spec.dtype.num, spec.layout, batch.sources is None, batch.on_host
            array = batch._array
            if array is not None and batch.on_host:  # which has no rows yet
                kind.append(array.shape)
                if contents:
                    if array.nbytes > _KEY_BYTES:
                        return None
                    kind.append(array.tobytes())
                continue
            seen[k].rows, seen[k].n, seen[k].contents = batch.rows_address, len(spec.shape), contents and batch.on_host
            k += 1
        try:
            memory = self._idle.pop()
        except IndexError:
            memory = ctypes.create_string_buffer(_KEY_BYTES)
        size = kernels.library().gather_kind(seen, k, memory, _KEY_BYTES)
        if size >= 0:
            kind.append(ctypes.string_at(memory, size))
        self._idle.append(memory)
        return tuple(kind) if size >= 0 else None

    def find(self, key: tuple | None, ctx: Context) -> GpuPlan | None:
        plan = self._plans.get(key) if key is not None else None
        return plan if plan is not None and plan.session is ctx.gpu.session else None

    def keep(self, key: tuple | None, plan: GpuPlan) -> None:
        """Keeps a plan whose key was seen before, if it is good for other batches."""
        if key is None:
            return
        with self._lock:
            if plan.faulty is not None:
                self._set_apart(plan.faulty)
                return
            number = hash(key)
            if number not in self._seen:
                self._seen.append(number)
                return
            before = self._plans.pop(key, None)
            self._nbytes += plan.nbytes - (0 if before is None else before.nbytes)
            self._plans[key] = plan
            while len(self._plans) > _KEPT_PLANS or (self._nbytes > _KEPT_BYTES and len(self._plans) > 1):
                self._nbytes -= self._plans.pop(next(iter(self._plans))).nbytes

    def _set_apart(self, number: int) -> None:
        """What has nothing to do with an operator whose plans can't be kept, is planned without it from now on."""
        if self._part[number] in self._apart:
            return
        self._apart.add(self._part[number])
        stays = [x for x in self._links if self._part[x.node.number] not in self._apart]
        goes = [x for x in self._links if self._part[x.node.number] in self._apart]
        self.order = Order(len(self._apart), [*stays, *goes], len(stays))
        self._plans.clear()
        self._nbytes = 0


def _parts(links: list[Link]) -> dict[int, int]:
    """A number for each operator, the same for those of which one reads what the other makes."""
    part = {x.node.number: x.node.number for x in links}

    def root(number: int) -> int:
        while part[number] != number:
            number = part[number]
        return number

    for x in links:
        for number, _ in x.ins:
            if number in part:
                part[root(x.node.number)] = root(number)
    return {number: root(number) for number in part}
