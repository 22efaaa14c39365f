# SPDX-License-Identifier: Apache-2.0
"""Runs the stages of a conditional's branch for the samples in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch, Spec
from ..graph.node import Node
from ..graph.scopes import Scope
from .context import BadSamples, Context, ScopedContext

# The output of an operator in a branch without samples; its type does not matter.
NOTHING = Batch(Spec(np.empty((0, 0), "i8"), np.dtype("u1")), None, (), None, np.empty((0,), "u1"))

Run = Callable[[Context, kernels.Pool], None]


def context_of(ctx: Context, scope: Scope) -> ScopedContext:
    """The context of a branch; created once per batch."""
    if scope not in ctx.scopes:
        parent = None if scope.parent is None else context_of(ctx, scope.parent)
        condition = ctx.values[scope.condition_edge]
        n = ctx.n if parent is None else parent.n
        if condition.spec.ndim and n:  # the split explains it
            raise ValueError("a condition is not a scalar")
        rows = ((condition.array() != 0) == scope.branch).nonzero()[0] if n else np.zeros(0, "i8")
        ctx.scopes[scope] = ScopedContext(ctx, rows if parent is None else parent.within[rows])
    return ctx.scopes[scope]


def runner(scope: Scope, nodes: list[Node], run: Run) -> Run:
    """Wraps `run` to process only the samples of a branch, to which the nodes belong."""
    edges = [(n.number, i) for n in nodes for i in range(n.n_outputs)]

    def run_in_branch(ctx: Context, pool: kernels.Pool) -> None:
        sub = context_of(ctx, scope)
        if not sub.n:
            ctx.values.update(dict.fromkeys(edges, NOTHING))
            return
        run_within(ctx, sub, run, pool)

    return run_in_branch


def run_within(whole: Context, sub: ScopedContext, run: Callable[..., None], *arguments: Any) -> None:
    """Runs a stage for the samples of a branch, and reports those that fail as samples of the whole batch."""
    sub.gpu = whole.gpu
    try:
        run(sub, *arguments)
    except BadSamples as bad:
        raise BadSamples({int(sub.within[i]): what for i, what in bad.samples.items()}) from None
    finally:
        sub.gpu = None
    for i, what in sub.failed.items():
        whole.failed[int(sub.within[i])] = what
    sub.failed.clear()
