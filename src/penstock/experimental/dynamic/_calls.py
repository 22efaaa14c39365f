# SPDX-License-Identifier: Apache-2.0
"""Calls of operators with the same constants, and plans for sequences of such calls. Both are cached."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Hashable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ...core import rng
from ...core.batch import Batch
from ...core.errors import PipelineError, Site
from ...core.kernels import Pool
from ...core.source import Source
from ...exec.context import BadSamples, Context
from ...exec.plan import Plan
from ...graph import trace
from ...graph.node import DataNode, Node
from ._errors import of_calls, of_samples, retold

_MOST_CALLS, _MOST_PLANS = 2048, 512

Build = Callable[[list[DataNode]], Any]  # nodes of the inputs -> nodes of the call


class _Given(Source, abstract=True):
    """An input of a plan: a batch that already exists."""

    fn_name = "input"


class _Scope:
    """A definition into which operators are traced."""

    def __init__(self) -> None:
        self.definition = trace.Definition()

    def __enter__(self) -> trace.Definition:
        trace.stack().append(self)
        return self.definition

    def __exit__(self, *exception: Any) -> None:
        trace.stack().pop()


def _given(definition: trace.Definition, device: str) -> DataNode:
    number = len(definition.nodes)
    node = Node(_Given({}), (), {}, f"__input_{number}", number, device, ())
    definition.add(node)
    return node.outputs[0]


def _listed(made: Any) -> list[DataNode]:
    return list(made) if isinstance(made, (list, tuple)) else [made]


class Call:
    """One or several operators with their constants, for inputs on the given devices ("cpu" or "gpu"). The constructor
    checks the constants, and raises TypeError and ValueError as in a pipeline."""

    __slots__ = ("build", "devices", "draws", "n_outputs", "name", "now", "repeatable", "uses_gpu")

    def __init__(self, build: Build, devices: Sequence[str]):
        self.build = build
        with _Scope() as definition, of_calls():
            made = build([_given(definition, d) for d in devices])
        self.devices = [d.device for d in _listed(made)]
        self.n_outputs = len(self.devices)
        ops = [n for n in definition.nodes if not isinstance(n.op, _Given)]
        self.name = ops[-1].op.display_name() if ops else "input"
        self.draws = any("seed" in n.op.schema for n in ops)
        self.now = any(n.op.values.get("preserve") or n.op.in_order for n in ops)  # has side effects
        # Whether it may be computed again: it reads only its inputs, and calls no user code.
        self.repeatable = all(n.op.in_chain(len(n.inputs)) and n.op.module != "io.file" for n in ops)
        self.uses_gpu = any(n.device in ("gpu", "mixed") for n in definition.nodes)


_calls: dict[tuple, Call] = {}


def call_of(key: tuple, build: Build, devices: Sequence[str], noticed: Callable[[Any], None] | None = None) -> Call:
    """The call with a key. Created by `build` the first time; then `noticed` is called."""
    call = _calls.get(key)
    if call is None:
        call = Call(build, devices)
        if len(_calls) >= _MOST_CALLS:
            _calls.clear()
        call = _calls.setdefault(key, call)  # another thread may have been faster
        if noticed is not None:
            noticed(key[0][0])
    return call


@lru_cache(16)
def _places(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Epoch and position of n samples, for random numbers."""
    epoch, position = np.zeros(n, "u4"), np.arange(n)
    epoch.setflags(write=False)
    position.setflags(write=False)
    return epoch, position


class Together:
    """Several calls as one plan. `steps`: for each call its inputs, as (call, output) or the index of a given batch,
    and which outputs are needed."""

    def __init__(self, steps: Sequence[tuple[Call, tuple, tuple[bool, ...]]], devices: Sequence[str]):
        self.lock = threading.Lock()
        outputs: list[DataNode] = []
        self.nodes: list[list[Node]] = []  # by call
        with _Scope() as definition:
            given = [_given(definition, d) for d in devices]
            made: list[list[DataNode]] = []
            for call, edges, wanted in steps:
                first = len(definition.nodes)
                made.append(_listed(call.build([given[e] if isinstance(e, int) else made[e[0]][e[1]] for e in edges])))
                self.nodes.append(definition.nodes[first:])
                outputs += [d for d, w in zip(made[-1], wanted) if w]
        self.given = [d.source.number for d in given]
        self.plan = Plan(definition.nodes, outputs, [], 0)
        kept = {n.number for n in self.plan.nodes}
        # By call, the resolvers of operators that draw random numbers.
        self.drawing = [
            [self.plan.resolvers[n.number] for n in nodes if "seed" in n.op.schema and n.number in kept]
            for nodes in self.nodes
        ]

    def run(
        self,
        n: int,
        batches: Sequence[Batch],
        seeds: Sequence[int],
        sites: Sequence[tuple[Site, ...]],
        pool: Pool,
        session: Callable[[], Any],
    ) -> list[Batch]:
        """Returns the needed outputs. Raises PipelineError with the user's source line."""
        with self.lock:
            for nodes, where in zip(self.nodes, sites):
                for node in nodes:
                    node.sites = where
            for resolvers, seed in zip(self.drawing, seeds):
                for i, resolver in enumerate(resolvers):
                    resolver.key = rng.key(seed, i)
            if self.plan.uses_gpu:
                self.plan.session = session()
                self.plan.check_device()
            ctx = Context(n, *_places(n), 0)
            for number, batch in zip(self.given, batches):
                ctx.values[number, 0] = batch
            try:
                outputs = self.plan.run(ctx, pool)
                if ctx.failed:
                    raise BadSamples(dict(ctx.failed))
            except BadSamples as bad:
                raise _told(bad) from None
            except PipelineError as e:
                raise type(e)(retold(str(e))) from e.__cause__
            return outputs


def _told(bad: BadSamples) -> PipelineError:
    samples = bad.samples
    node = min(samples.items())[1][0]
    unknown = re.compile(r"sample \d+ of iteration \d+")  # samples without a source
    sources = {i: "" if unknown.fullmatch(s) else s for i, (_, _, s) in samples.items()}
    name = node.op.display_name().removeprefix("fn.")
    reasons = {i: reason for i, (_, reason, _) in samples.items()}
    return of_samples(name, node.device, node.sites, reasons, sources, node.op.sample_error)


_plans: dict[Hashable, Together] = {}


def forget_plans() -> None:
    """Called after a fork: another thread may have been running plans."""
    _plans.clear()


def together(steps: tuple[tuple[Call, tuple, tuple[bool, ...]], ...], devices: tuple[str, ...]) -> Together:
    """The plan of these calls, from the cache or new."""
    key = steps, devices
    plan = _plans.get(key)
    if plan is None:
        plan = Together(steps, devices)
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        plan = _plans.setdefault(key, plan)
    return plan
