# SPDX-License-Identifier: Apache-2.0
"""Runs a plan synchronously in the calling thread, for batches already in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import kernels
from ..core.batch import Batch
from ..core.rows import indices
from .context import BadSamples, Context
from .plan import Plan
from .scheduling.policy import Policy


class Direct:
    """`session` is the GPU session if the plan uses a GPU. `run` may be called by several threads."""

    def __init__(self, plan: Plan, pool: kernels.Pool, session: Any = None):
        self.plan, self._pool = plan, pool
        self._inputs = {node.name: (node.number, 0) for node in plan.sources}
        if session is not None:
            plan.session = session
            plan.check_device()

    @property
    def draws(self) -> bool:
        """Whether any operator draws random numbers."""
        return bool(self.plan.drawing)

    def run(self, inputs: Mapping[str, Batch], epoch: int = 0, position: int = 0) -> list[Batch]:
        """Returns the outputs for the batches of the sources, given by name. Random numbers are those of the samples
        from `position` on in `epoch`. Raises PipelineError for samples that can't be processed."""
        n = len(next(iter(inputs.values())))
        ctx = Context(n, np.full(n, epoch, "u4"), indices(n) + position, position)
        for name, batch in inputs.items():
            ctx.values[self._inputs[name]] = batch
        return run_alone(self.plan, ctx, self._pool, 0)


def run_alone(plan: Plan, ctx: Context, pool: kernels.Pool, iteration: int) -> list[Batch]:
    """Runs a plan for a batch in the calling thread. Raises PipelineError for samples that can't be processed."""
    try:
        outputs, failed = plan.run(ctx, pool), ctx.failed
    except BadSamples as bad:
        failed = bad.samples
    if failed:
        Policy().record(failed, iteration)
    return outputs
