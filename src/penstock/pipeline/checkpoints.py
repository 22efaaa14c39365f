# SPDX-License-Identifier: Apache-2.0
"""Going on later: checkpoints of a `Pipeline`."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

from ..exec.plan import Plan
from ..exec.scheduling import checkpoint as checkpoints
from ..exec.scheduling.executor import Executor
from .inspection import Inspection


class Saving(Inspection):
    """Base of `Pipeline`."""

    def _ready(self) -> Executor:
        raise NotImplementedError

    def _start(self, plan: Plan, executor: Executor) -> None:
        """Prepares saving checkpoints, and goes on from one."""
        if self._enable_checkpointing:
            self._check_sources(plan)
            executor.keep_state()
            if not any(n.op.values.get("lazy_init") for n in plan.sources):
                checkpoints.describe(plan)  # now, so that saving takes no time
        if self._checkpoint is not None:
            executor.restore(self._checkpoint.restore(plan))

    def _check_sources(self, plan: Plan) -> None:
        for node in checkpoints.without_state(plan):
            warnings.warn(
                node.describe(
                    "this source can't say where it is, so a checkpoint does not hold its place: a pipeline that "
                    "goes on from one takes what the source then gives. Sources that can: readers, callables that take "
                    "a SampleInfo, a BatchInfo or the number of the batch, iterables that can be iterated anew, and "
                    "objects with the methods state_dict() and load_state_dict(state)"
                ),
                stacklevel=4,
            )

    def checkpoint(self, filename: str | os.PathLike | None = None) -> bytes:
        """Where the pipeline is: `checkpoint=` of another one of the same definition goes on from there.

        That is, from behind the last batch that was taken, whatever was prepared ahead. What is random is the same, for
        any number of threads and any prefetch depth. A few hundred bytes of JSON, also written to `filename` if it is
        given. A reader's shards may be others when going on: what the shards before had left of their epoch is divided
        among them, and then the order is theirs. For this the new ones take the checkpoint of any of the old ones, or a
        list of all of them where these had different seeds.

        >>> from penstock import fn, pipeline_def
        >>> @pipeline_def(batch_size=2, seed=7, enable_checkpointing=True)
        ... def pipe():
        ...     return fn.random.uniform()
        >>> a = pipe()
        >>> _, saved, after = a.run(), a.checkpoint(), a.run()[0].as_array()
        >>> bool((pipe(checkpoint=saved).run()[0].as_array() == after).all())
        True
        """
        return self._save_checkpoint(self._state(), None, filename)

    def _state(self) -> Any:
        """Where the pipeline is, for `_save_checkpoint`."""
        if not self._enable_checkpointing:
            raise RuntimeError("build the pipeline with enable_checkpointing=True to save checkpoints of it")
        return self._ready().state()

    def _left_over(self, reader: str | None) -> tuple[int, int]:
        """The epoch of a reader and the samples it divides among its shards at first, when their number has changed."""
        assert self._plan is not None
        return next(self._plan.source_op(n).left_over() for n in self._plan.sources if n.name == reader)

    def _save_checkpoint(self, state: Any, iterator: dict[str, Any] | None, filename: Any = None) -> bytes:
        assert self._plan is not None
        content = checkpoints.save(self._plan, state, sys.modules["penstock"].__version__, iterator)
        if filename is not None:
            with open(filename, "wb") as f:
                f.write(content)
        return content
