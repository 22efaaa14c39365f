# SPDX-License-Identifier: Apache-2.0
"""Pending calls. Calls that depend on each other are computed in one plan.

Results that are used only inside a plan are not kept, even if a variable still refers to them, as it is usually
reassigned soon. So only the part of an image that a crop needs is decoded. If the program does read such a result, it
is computed again, and from then on results of that line are kept.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.errors import Site
from ._calls import Call, together

_number = itertools.count()
_counting = threading.Lock()  # protects `readers`: one thread calls while another computes

Edge = tuple["Invocation", int]
_SMALL = 256  # bytes; copying a sample of this size is faster than repeating its row
_looked_at: set[tuple[Call, tuple[Site, ...]]] = set()  # calls whose used results were also read


class Invocation:
    """A call for n samples. `inputs` are batches, or outputs of other invocations, until it is computed.

    Computing it requires `context.lock`."""

    __slots__ = (
        *("__weakref__", "asked", "call", "context", "device_id", "done", "error", "handles", "inputs", "n", "number"),
        *("readers", "seed", "sites", "values"),
    )

    def __init__(
        self,
        call: Call,
        inputs: Sequence[Batch | Edge],
        n: int,
        seed: int,
        sites: tuple[Site, ...],
        context: Any,
        device_id: int | None,
    ):
        self.call, self.inputs, self.n, self.seed, self.sites = call, inputs, n, seed, sites
        self.context, self.device_id = context, device_id
        self.number = next(_number)
        self.done = self.asked = False  # asked: a result is being read
        self.error: Exception | None = None
        self.values: list[Batch | None] = [None] * call.n_outputs
        self.handles: list[Any] = []  # weak references to the tensors or batches of the outputs
        self.readers = [0] * call.n_outputs  # number of invocations that wait for each output
        self._reads(1)

    def _reads(self, change: int) -> None:
        for x in self.inputs:
            if type(x) is tuple:
                with _counting:
                    x[0].readers[x[1]] += change

    def result(self, index: int) -> Batch:
        """Returns an output, computing it if necessary. Raises the error of the call."""
        self.asked = True
        if not self.done:
            self.context.compute(self)
        if self.values[index] is None and self.error is None:
            _looked_at.add((self.call, self.sites[-1:]))
            self.context.compute_again(self)
        if self.error is not None:
            raise self.error.with_traceback(None)
        value = self.values[index]
        assert value is not None
        self.asked = False
        return value

    def settle(self, wait: bool) -> None:
        """Computes it now; with `wait`, also waits for the GPU."""
        if not self.done:
            self.context.compute(self)
        if self.error is not None:
            raise self.error.with_traceback(None)
        for value in self.values:
            if wait and value is not None and not value.on_host:
                value.wait()

    def is_wanted(self) -> bool:
        """Whether its outputs can still be read."""
        return any(h() is not None for h in self.handles) or any(self.readers)

    def finish(self, error: Exception | None = None, inputs: Sequence[Batch | Edge] = ()) -> None:
        """Marks it as computed, or failed. `inputs`: for computing it again."""
        self._reads(-1)
        self.error, self.inputs = error, inputs
        self.done = True

    def revive(self) -> None:
        """Makes it pending again, with the invocations that it needs."""
        if self.done:
            for x in self.inputs:
                if type(x) is tuple and x[0].values[x[1]] is None:
                    x[0].revive()
            self._reads(1)
            self.done = False


def forget_locks() -> None:
    """Called after a fork: another thread may have held locks."""
    global _counting
    _counting = threading.Lock()


def ancestors(roots: Iterable[Invocation]) -> list[Invocation]:
    """Pending invocations and those they depend on, in the order of the calls."""
    found: dict[int, Invocation] = {}
    todo = [r for r in roots if not r.done]
    while todo:
        inv = todo.pop()
        if inv.number not in found:
            found[inv.number] = inv
            todo += [x[0] for x in inv.inputs if type(x) is tuple and not x[0].done]
    return [found[k] for k in sorted(found)]


def compute(invocations: Sequence[Invocation], context: Any) -> None:
    """Computes invocations, which are ordered by dependency."""
    levels: dict[int, int] = {}
    groups: dict[tuple, list[Invocation]] = {}
    for inv in invocations:
        level = 0
        for x in inv.inputs:
            if type(x) is tuple and x[0].number in levels:
                p = x[0]
                apart = p.n != inv.n or (p.device_id or 0) != (inv.device_id or 0)
                level = max(level, levels[p.number] + apart)
        levels[inv.number] = level
        groups.setdefault((level, inv.n, inv.device_id or 0), []).append(inv)
    for key in sorted(groups):
        _compute_together(groups[key], context)


def _compute_together(group: Sequence[Invocation], context: Any) -> None:
    try:
        _run(group, context)
        return
    except Exception as e:
        if len(group) == 1:
            group[0].finish(e)
            return
    # One of them failed: computes each separately, so that the others get their results.
    for inv in group:
        failed = next((x[0].error for x in inv.inputs if type(x) is tuple and x[0].error is not None), None)
        if failed is not None:
            inv.finish(failed)
        else:
            _compute_together([inv], context)


def _run(group: Sequence[Invocation], context: Any) -> None:
    place = {inv.number: i for i, inv in enumerate(group)}
    n = group[0].n
    batches: list[Batch] = []
    known: dict[int, int] = {}
    inside = [[0] * inv.call.n_outputs for inv in group]  # by output, readers in the group
    all_edges: list[tuple] = []
    for inv in group:
        edges: list[Any] = []
        for x in inv.inputs:
            if isinstance(x, tuple):
                producer, i = x
                j = place.get(producer.number)
                if j is not None:
                    inside[j][i] += 1
                    edges.append((j, i))
                    continue
                if producer.error is not None:
                    raise producer.error
                found = producer.values[i]
                assert found is not None
            else:
                found = x
            at = known.get(id(found))
            if at is None:
                at = known[id(found)] = len(batches)
                batches.append(found)
            edges.append(at)
        all_edges.append(tuple(edges))
    steps = []
    for inv, at_edges, within in zip(group, all_edges, inside):
        # Reads the handles before `asked`, as a holder may request a result concurrently.
        held = [h() is not None for h in inv.handles]
        passes = inv.call.repeatable and not inv.asked and (inv.call, inv.sites[-1:]) not in _looked_at
        wanted = tuple(bool(r > w or h and not (passes and w)) for h, r, w in zip(held, inv.readers, within))
        steps.append((inv.call, at_edges, wanted))
    devices = tuple("cpu" if b.on_host else "gpu" for b in batches)
    plan = together(tuple(steps), devices)
    fed = [b if len(b) == n else repeated(b, n) for b in batches]
    device_id = group[0].device_id or 0
    seeds, sites = [inv.seed for inv in group], [inv.sites for inv in group]
    outputs = iter(plan.run(n, fed, seeds, sites, context.pool(), lambda: context.session(device_id)))
    for inv, (_, _, wanted) in zip(group, steps):
        inv.values = [next(outputs) if w else None for w in wanted]
        if inv.call.uses_gpu:
            context.make_ready(inv.values)
    kept: set[int] = set()  # invocations that may have to be computed again
    for inv, at_edges, (_, _, wanted) in zip(reversed(group), reversed(all_edges), reversed(steps)):
        if inv.number not in kept and not any(h() is not None and not w for h, w in zip(inv.handles, wanted)):
            inv.finish()
            continue
        inputs: list[Any] = []
        for e in at_edges:
            if isinstance(e, int):
                inputs.append(batches[e])
                continue
            producer, i = group[e[0]], e[1]
            inputs.append(producer.values[i] or (producer, i))
            kept.add(producer.number)
        inv.finish(None, inputs)


def repeated(batch: Batch, n: int) -> Batch:
    """A batch of one sample, repeated n times. Large samples are not copied."""
    if batch.on_host and n and batch.spec.dtype.itemsize * int(batch.spec.volumes()[0]) <= _SMALL:
        sources = None if batch.sources is None else list(batch.sources) * n
        return Batch.from_array(np.repeat(batch.array(), n, axis=0), batch.spec.layout, sources)
    return batch.take(np.zeros(n, "i8"))


def handle(inv: Invocation, made: Any) -> Any:
    """Registers `made` as the handle of the next output."""
    inv.handles.append(weakref.ref(made))
    return made
