# SPDX-License-Identifier: Apache-2.0
"""Which inputs of a chain tell where the samples of its outputs come from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ..core.batch import Batch
from ..core.source_name import joined
from .cpu.wiring import Edge


class Joint:
    """The names of several inputs, which make those of an output."""

    __slots__ = ("_join", "_parts")

    def __init__(self, parts: Sequence[Origin], join: Callable[[list], Sequence[str] | None] = joined):
        self._parts, self._join = tuple(parts), join

    def names(self, values: Mapping[Edge, Batch]) -> Sequence[str] | None:
        return self._join([names_of(part, values) for part in self._parts])


Origin = Edge | Joint | None


def names_of(origin: Origin, values: Mapping[Edge, Batch]) -> Sequence[str] | None:
    """Where the samples come from; None if nobody knows."""
    if isinstance(origin, Joint):
        return origin.names(values)
    return None if origin is None else values[origin].sources


def origins(named: Iterable[Edge], calls: Iterable[Any]) -> dict[Edge, Origin]:
    """The origins of all edges of a chain. `named`: its inputs that know where they come from; `calls`: its operators
    in order, as `cpu.chain.Link` or, with arguments, `_Call`."""
    found: dict[Edge, Origin] = {e: e for e in named}
    for call in calls:
        parts = [found.get(e) for e in call.ins[: call.node.op.n_named]]
        known = list(dict.fromkeys(p for p in parts if p is not None))
        if not known:
            continue
        join = call.node.op.source_names(call.a) if hasattr(call, "a") else None
        if join is not None:
            found.update(dict.fromkeys(call.outs, Joint(parts, join)))
        else:
            found.update(dict.fromkeys(call.outs, known[0] if len(known) == 1 else Joint(known)))
    return found
