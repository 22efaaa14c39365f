# SPDX-License-Identifier: Apache-2.0
"""Position of an iterator in its epoch, for checkpoints. Imports no framework."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..pipeline import Pipeline
from .epochs import ReaderEpochs

if TYPE_CHECKING:
    from .base_iterator import DaliIterator


def states(iterator: DaliIterator[Any]) -> list[tuple[Any, dict[str, Any]]]:
    """For each pipeline its state and that of the iterator. Empty if none has checkpoints enabled."""
    pipes = iterator._pipes
    if not any(p._checkpoints.is_enabled for p in pipes):
        return []
    for p in pipes:
        p._checkpoints.check_enabled()
    own = {
        "step": iterator._step,
        "given": iterator._given,
        "ended": iterator._ended,
        "continues": iterator._continues,
        "batch_size": iterator.batch_size,
        "policy": iterator._last_batch_policy.name,
        "epochs": None if iterator._epochs is None else iterator._epochs.state(),
    }
    return [(p._state(), own) for p in pipes]


def of(pipes: Sequence[Pipeline]) -> dict[str, Any] | None:
    """The state saved by an iterator, if the pipelines were restored from its checkpoints; otherwise None."""
    found = [p._checkpoints.restored.iterator for p in pipes if p._checkpoints.restored is not None]
    saved = [s for s in found if s is not None]
    if not saved:
        return None
    if len(saved) < len(pipes) or any(s != saved[0] for s in saved):
        raise ValueError(
            "the pipelines go on from checkpoints of different moments; give each the one that checkpoints() returned "
            "for it"
        )
    return saved[0]


def restore(iterator: DaliIterator[Any], saved: dict[str, Any]) -> None:
    """Restores a saved state, also in the middle of an epoch."""
    epochs = iterator._epochs
    if (saved["epochs"] is None) != (epochs is None):
        raise ValueError(
            "the checkpoint is of an iterator "
            f"{'without' if saved['epochs'] is None else 'with'} a reader_name or a size, this one is "
            f"{'without' if epochs is None else 'with'}"
        )
    shards = saved["epochs"].get("n_shards") if epochs is not None else None
    if (shards is None) != (not isinstance(epochs, ReaderEpochs)):
        raise ValueError("the checkpoint is of an iterator with a size, and this one has a reader_name, or the reverse")
    for key, ours in (("batch_size", iterator.batch_size), ("policy", iterator._last_batch_policy.name)):
        if epochs is not None and saved[key] != ours:
            raise ValueError(f"the checkpoint is of an iterator with {key}={saved[key]}, this one has {ours}")
    if isinstance(epochs, ReaderEpochs) and saved["epochs"]["n_shards"] != epochs.n_shards:
        pipe = iterator._pipes[0]
        epochs.divide(*pipe._checkpoints.left_over(pipe._built(), iterator._reader_name))
        return
    if epochs is not None:
        epochs.restore(saved["epochs"])
    iterator._step, iterator._given = saved["step"], saved["given"]
    iterator._ended, iterator._continues = saved["ended"], saved["continues"]
