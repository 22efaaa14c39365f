# SPDX-License-Identifier: Apache-2.0
"""Saves and restores checkpoints of a `Pipeline`."""

from __future__ import annotations

import sys
import warnings
from typing import Any

from ..core.errors import ArgumentValueError
from ..exec.plan import Plan
from ..exec.scheduling import checkpoint as checkpoints
from ..exec.scheduling.checkpoint import State
from ..exec.scheduling.executor import Executor
from .settings import Settings


class Checkpoints:
    """Saves the state of a pipeline, and continues from a saved state."""

    def __init__(self, settings: Settings):
        self._settings = settings

    @property
    def is_enabled(self) -> bool:
        return self._settings.enable_checkpointing

    @property
    def restored(self) -> checkpoints.Checkpoint | None:
        """The checkpoint that the pipeline continues from; None if none was given."""
        return self._settings.checkpoint

    def start(self, plan: Plan, executor: Executor) -> None:
        """Call before the first batch is made."""
        if self.is_enabled:
            _check_sources(plan)
            executor.keep_state()
            if not any(n.op.values.get("lazy_init") for n in plan.sources):
                checkpoints.describe(plan)  # computed now, so that saving is fast
        if self.restored is not None:
            executor.restore(self.restored.restore(plan))

    def state(self, executor: Executor) -> State:
        """The state of the pipeline, for `save`."""
        self.check_enabled()
        return executor.state()

    def check_enabled(self) -> None:
        if not self.is_enabled:
            raise ArgumentValueError("build the pipeline with enable_checkpointing=True to save checkpoints of it")

    def save(self, plan: Plan, state: State, iterator: dict[str, Any] | None = None) -> bytes:
        """Returns the checkpoint as JSON; `iterator` is the state that an iterator adds."""
        return checkpoints.save(plan, state, sys.modules["penstock"].__version__, iterator)

    def left_over(self, plan: Plan, reader: str | None) -> tuple[int, int]:
        """If the number of shards has changed: the epoch, and the number of samples that a reader first divides among
        its new shards."""
        return next(plan.source_op(n).left_over() for n in plan.sources if n.name == reader)


def _check_sources(plan: Plan) -> None:
    for node in checkpoints.without_state(plan):
        warnings.warn(
            node.describe(
                "the position of this source can't be saved, so a pipeline restored from a checkpoint uses whatever "
                "the source returns then. Sources with a position: readers, callables that take a SampleInfo, a "
                "BatchInfo or the number of the batch, iterables that can be iterated again, and objects with the "
                "methods state_dict() and load_state_dict(state)"
            ),
            stacklevel=5,
        )
