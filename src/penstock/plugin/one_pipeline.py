# SPDX-License-Identifier: Apache-2.0
"""Fast path for batches of a single GPU pipeline: the GPU may wait for the iterator's work per batch, as all Python
threads share one core (docs/decisions/0034)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..pipeline import Pipeline
from ..tensors import TensorListCPU, TensorListGPU
from .epochs import LastBatchPolicy
from .errors import check_size

if TYPE_CHECKING:
    from .base_iterator import DaliIterator

_STEPS = ("_take", "_run", "_run_in_epoch", "_in_epoch", "_at_end", "_belonging")
_OF_PIPELINES = {name: getattr(Pipeline, name) for name in ("run", "_next", "_wrapped")}


def serves(it: DaliIterator[Any]) -> bool:
    """Whether the fast path is equivalent to the iterator: no part of the iterator or pipeline is overridden."""
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
    """Same as `DaliIterator._take`."""
    pipe, epochs, size = it._pipes[0], it._epochs, it.batch_size

    def run() -> list[Any]:
        if not it._running:
            pipe.schedule_run()
            it._running = True
        pipe._ready()
        with pipe._runner.lock:
            batches = pipe._next()
        check_size(it, pipe, len(batches[0]))
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
            continue  # no samples left by on_error="skip"
        if keep < size:
            keep = it._belonging(pipe, outputs, keep)
            if keep < len(outputs[0]):
                return it._convert_one(outputs, keep)
        return it._convert_one(outputs, None)


def given_out(output: Any) -> Any:
    """Wraps an output as returned by the pipeline."""
    return TensorListCPU(output) if output.on_host else TensorListGPU(output)
