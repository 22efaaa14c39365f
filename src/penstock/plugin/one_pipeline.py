# SPDX-License-Identifier: Apache-2.0
"""Batches of one pipeline, on the GPU, on the shortest way to the framework: the GPU may have to wait for what an
iterator does for each of them, as all threads that run Python share a core then (docs/decisions/0034)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..pipeline import Pipeline
from ..tensors import TensorListCPU, TensorListGPU
from .epochs import LastBatchPolicy

if TYPE_CHECKING:
    from .base_iterator import DaliIterator

_STEPS = ("_take", "_run", "_run_in_epoch", "_in_epoch", "_at_end", "_belonging")
_OF_PIPELINES = {name: getattr(Pipeline, name) for name in ("run", "_next", "_wrapped")}


def serves(it: DaliIterator[Any]) -> bool:
    """Whether this is another way to what the iterator would do: nobody has overridden a part of it."""
    from .base_iterator import DaliIterator

    def owner(name: str) -> type:
        return next(c for c in type(it).__mro__ if name in vars(c))

    pipe = it._pipes[0]
    return (
        it._takes_one
        and len(it._pipes) == 1
        and pipe._plan is not None
        and pipe._plan.uses_gpu
        and all(value is None for value in pipe._settings.demanded.values())
        and all(getattr(type(pipe), name) is own and name not in vars(pipe) for name, own in _OF_PIPELINES.items())
        and owner("_convert") is owner("_convert_one")
        and all(owner(name) is DaliIterator for name in _STEPS)
    )


def take(it: DaliIterator[Any]) -> Any:
    """What `_take` gives."""
    pipe, epochs, size = it._pipes[0], it._epochs, it.batch_size

    def run() -> list[Any]:
        if not it._running:
            pipe.schedule_run()
            it._running = True
        with pipe._runner.lock:
            batches = pipe._next()
        pipe._runner.ask_ahead(pipe.iter_setup if pipe._has_iter_setup else None)
        return batches

    while True:
        outputs = it._in_epoch(run)
        keep = size
        if epochs is not None and it._last_batch_policy is LastBatchPolicy.PARTIAL:
            keep = epochs.keep(it._step)[0]
        it._step += 1
        for output in outputs:
            if not output.on_host and not output.ready.passed:
                it._hold_back([o.ready for o in outputs if not o.on_host])
                break
        if keep and not len(outputs[0]):
            continue  # on_error="skip" left nothing
        if keep < size:
            keep = it._belonging(pipe, outputs, keep)
            if keep < len(outputs[0]):
                return it._convert_one(outputs, keep)
        return it._convert_one(outputs, None)


def given_out(output: Any) -> Any:
    """As the pipeline gives it out."""
    return TensorListCPU(output) if output.on_host else TensorListGPU(output)
