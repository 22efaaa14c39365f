# SPDX-License-Identifier: Apache-2.0
"""Determines which inputs of a chain give the origins of its outputs' samples."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from ..core.batch import Batch
from ..core.op import Operator
from ..core.source_name import joined
from ..graph.node import Edge
from .arguments import Resolver


class JoinedNames:
    """An output's names that combine those of several inputs; if a resolver is given, by its operator's
    `source_names`."""

    __slots__ = ("_parts", "_resolver")

    def __init__(self, parts: Sequence[Origin], resolver: Resolver | None = None):
        self._parts, self._resolver = tuple(parts), resolver

    def names(self, values: Mapping[Edge, Batch]) -> Sequence[str] | None:
        names = [names_of(part, values) for part in self._parts]
        if self._resolver is None:
            return joined(names)
        n = next((len(x) for x in names if x is not None), 0)
        return self._resolver.node.op.source_names(names, partial(self._resolver.of_samples, n=n, values=values))


Origin = Edge | JoinedNames | None


def names_of(origin: Origin, values: Mapping[Edge, Batch]) -> Sequence[str] | None:
    """The origins of the samples; None if unknown."""
    if isinstance(origin, JoinedNames):
        return origin.names(values)
    return None if origin is None else values[origin].sources


def origins(calls: Iterable[Any], inputs: Iterable[Edge], values: Mapping[Edge, Batch]) -> dict[Edge, Origin]:
    """The origins of all edges of a chain with the operators `calls`, in order (`cpu.chain.Link` or `_Call`); `values`
    contain the batches of its inputs."""
    found: dict[Edge, Origin] = {e: e for e in inputs if values[e].sources is not None}
    for call in calls:
        op = call.node.op
        parts = [found.get(e) for e in call.ins[: op.n_named]]
        known = list(dict.fromkeys(p for p in parts if p is not None))
        if not known:
            continue
        if type(op).source_names is not Operator.source_names:
            origin: Origin = JoinedNames(parts, call.resolver)
        else:
            origin = known[0] if len(known) == 1 else JoinedNames(known)
        found.update(dict.fromkeys(call.outs, origin))
    return found
