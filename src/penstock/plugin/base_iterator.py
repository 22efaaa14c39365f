# SPDX-License-Identifier: Apache-2.0
"""Base of the iterators for all frameworks: epochs, resets, the last batch. Imports no framework."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from ..core.constructors import names_checked, suggest, warn_deprecated
from ..pipeline import Pipeline, PipelineError
from ..tensors import TensorListCPU
from . import one_pipeline, resume
from .epochs import LastBatchPolicy, ReaderEpochs, SizedEpochs, policy_of
from .errors import IteratorError, check_size
from .facts import Facts
from .steps import Steps

__all__ = ["LastBatchPolicy"]

_AUTO_RESET = {None: "no", False: "no", "no": "no", "false": "no", True: "yes", "yes": "yes", "true": "yes"}
_AUTO_RESET["raise"] = "raise"


def _auto_reset(value: Any) -> str:
    key = value.lower() if isinstance(value, str) else value
    if (isinstance(key, (bool, str)) or key is None) and key in _AUTO_RESET:
        return _AUTO_RESET[key]
    raise ValueError(f"auto_reset takes True, False, 'yes', 'no' or 'raise'; got {value!r}")


def list_of_pipelines(pipelines: Any) -> list[Pipeline]:
    """The pipelines of an iterator, given as one or as several."""
    if isinstance(pipelines, Pipeline):
        return [pipelines]
    if pipelines is None:
        raise IteratorError("pipelines takes a Pipeline or a list of them; got None")
    if not isinstance(pipelines, Iterable):
        made = getattr(pipelines, "_is_pipeline_def", False)
        hint = f"; call it: {pipelines.__name__}(batch_size=...) gives a pipeline" if made else ""
        raise TypeError(f"pipelines takes a Pipeline or a list of them; got {type(pipelines).__name__}{hint}")
    return list(pipelines)


def _count(n: int, what: str) -> str:
    return f"{n} {what}{'s' * (n != 1)}"


def names_of(output_map: Any) -> list[str]:
    """Checks `output_map` and returns the names."""
    if isinstance(output_map, str) or not isinstance(output_map, Sequence) or not output_map:
        raise ValueError(f"output_map takes a list of names, one for each output of the pipeline; got {output_map!r}")
    names = list(output_map)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise IteratorError(
            f"the names in output_map have to differ from each other; {', '.join(map(repr, twice))} is there more "
            f"than once"
        )
    return names


# Maximum number of returned batches that the GPU has not completed: more would only use host memory.
_UNDER_WAY = 2


class Batch:
    """The outputs of one iteration of one pipeline, and how many of its samples belong to the epoch."""

    __slots__ = ("keep", "outputs")

    def __init__(self, outputs: tuple[TensorListCPU, ...], keep: int):
        self.outputs, self.keep = outputs, keep


_Value = TypeVar("_Value")
_Outputs = TypeVar("_Outputs")


class DaliIterator(Facts, Steps, Generic[_Value]):
    """Base of the iterators: runs the pipelines, counts batches, ends and starts epochs. Frameworks override
    `_convert`.

    An epoch ends with StopIteration. The next one begins with `reset()`, with the next `iter()`, or automatically with
    `auto_reset`.
    """

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        self._pipes = list_of_pipelines(pipelines)
        if not self._pipes:
            raise ValueError("pipelines takes a Pipeline or a list of them; got an empty list")
        for p in self._pipes:
            if not isinstance(p, Pipeline):
                raise TypeError(
                    f"pipelines takes a Pipeline or a list of them; got an element of type {type(p).__name__}"
                )
        policy = policy_of(last_batch_policy)
        if fill_last_batch is not None:
            warn_deprecated("fill_last_batch is deprecated; use last_batch_policy")
            wanted = LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
            if policy is not LastBatchPolicy.FILL and policy is not wanted:
                raise ValueError(
                    f"fill_last_batch={fill_last_batch} contradicts last_batch_policy={policy.name}; leave "
                    f"fill_last_batch out"
                )
            policy = wanted
        self._auto_reset = _auto_reset(auto_reset)
        self._names = names_of(output_map)
        self.output_map = list(output_map)
        self._last_batch_policy, self._last_batch_padded = policy, bool(last_batch_padded)
        self._reader_name = reader_name = reader_name or None  # older programs pass False here, for auto_reset
        if reader_name is not None and size != -1:
            raise IteratorError(
                f"size={size} and reader_name='{reader_name}' exclude each other: the reader provides the size of its "
                f"data set"
            )
        if reader_name is not None and last_batch_padded:
            raise IteratorError(
                f"last_batch_padded and reader_name='{reader_name}' exclude each other: the reader defines whether it "
                f"pads"
            )
        if reader_name is None and (isinstance(size, bool) or int(size) == 0 or int(size) < -1):
            raise IteratorError(
                f"size takes a positive number of samples, or -1 to iterate until the pipeline ends; got {size!r}"
            )
        sizes = {p.max_batch_size for p in self._pipes}
        if len(sizes) > 1:
            raise IteratorError(f"all pipelines need the same batch size; got {sorted(map(str, sizes))}")
        for p in self._pipes:
            p.build()
            if p.num_outputs != len(self._names):
                raise ValueError(
                    f"output_map has {_count(len(self._names), 'name')} ({', '.join(map(repr, self._names))}), but "
                    f"the pipeline has {_count(p.num_outputs, 'output')}"
                )
        self.batch_size = self._pipes[0].max_batch_size or 0
        self._epochs = self._make_epochs(int(size))
        if self._epochs is None and len(self._pipes) > 1:
            raise IteratorError("several pipelines need a reader_name or a size, so that their epochs end together")
        if self._epochs is not None and self._epochs.epoch.batches == 0:
            raise IteratorError(
                f"there is no batch in an epoch: last_batch_policy=DROP leaves out incomplete batches, and "
                f"batch_size={self.batch_size} "
                f"times {len(self._pipes)} pipelines is more than there are samples in "
                f"{'the smallest shard' if reader_name else 'size'}"
            )
        self._step = 0  # batches taken in this epoch
        self._arrived: int | None = None  # batches of the last epoch, if the sources ended before `size`
        self._given = 0  # batches returned
        self._ended = False
        self._running = False
        self._continues = False  # whether the pipelines continue from the previous epoch without a reset
        # GPU outputs are returned immediately; frameworks wait for them on the GPU.
        self._without_waiting = [(-1,) if p._plan is not None and p._plan.uses_gpu else () for p in self._pipes]
        self._under_way: deque[set[Any]] = deque()
        self._is_quick = one_pipeline.serves(self)
        self._first: list[Any] = []
        self._before_first: list[tuple[Any, dict[str, Any]]] = []
        saved = resume.of(self._pipes)
        if saved is not None:
            resume.restore(self, saved)
        if prepare_first_batch and not self._at_end():
            self._before_first = resume.states(self)
            try:
                self._first.append(self._take())
            except StopIteration:
                raise RuntimeError("there is no data in the pipeline: it ended before the first batch") from None

    def _make_epochs(self, size: int) -> ReaderEpochs | SizedEpochs | None:
        policy, padded = self._last_batch_policy, self._last_batch_padded
        if self._reader_name is None:
            return None if size < 0 else SizedEpochs(size, len(self._pipes), self.batch_size, policy, padded)
        metas = []
        for p in self._pipes:
            readers = p.reader_meta()
            if self._reader_name not in readers:
                raise IteratorError(
                    f"reader_name='{self._reader_name}': the pipeline has no reader of that name; it has "
                    f"{sorted(readers) or 'none'}.{suggest(self._reader_name, readers)}"
                )
            metas.append(readers[self._reader_name])
        for key in ("epoch_size", "number_of_shards", "pad_last_batch", "stick_to_shard"):
            values = [m[key] for m in metas]
            if len(set(values)) > 1:
                raise IteratorError(f"reader '{self._reader_name}': {key} differs between the pipelines: {values}")
        meta = metas[0]
        if meta["epoch_size"] < 1:
            raise IteratorError(f"reader '{self._reader_name}' has no samples")
        self._last_batch_padded = bool(meta["pad_last_batch"])
        return ReaderEpochs(
            meta["epoch_size"],
            meta["number_of_shards"],
            [m["shard_id"] for m in metas],
            self.batch_size,
            policy,
            self._last_batch_padded,
            bool(meta["stick_to_shard"]),
        )

    # Defined by frameworks ------------------------------------------------------------------------------------

    def _convert(self, batches: list[Batch]) -> _Value:
        """Converts the batches of the pipelines to the value of an iteration."""
        raise NotImplementedError

    _takes_one = False  # whether `_convert_one` is implemented

    def _convert_one(self, outputs: Sequence[Any], keep: int | None) -> _Value:
        """Like `_convert`, for the executor's outputs of one pipeline. `keep`: number of samples, None for all."""
        raise NotImplementedError

    # Iterating ----------------------------------------------------------------------------------------------------

    def _run(self) -> list[tuple[TensorListCPU, ...]]:
        """Returns one batch of every pipeline. If one fails, the others still advance."""
        if not self._running:
            for p in self._pipes:  # starts all of them before waiting for the first
                p.schedule_run()
            self._running = True
        batches, error = [], None
        for p, arguments in zip(self._pipes, self._without_waiting):
            try:
                batches.append(p.run(*arguments))
                check_size(self, p, len(batches[-1][0]))
                p._runner.ask_ahead(p.iter_setup if p._has_iter_setup else None)
            except (Exception, StopIteration) as e:
                error = error or e
        if error is not None:
            raise error
        if any(self._without_waiting):
            self._hold_back({o._batch.ready for b in batches for o in b if not o._batch.on_host})  # type: ignore[attr-defined]
        return batches

    def _hold_back(self, made: Iterable[Any]) -> None:
        """Limits the number of incomplete batches to `_UNDER_WAY` by waiting for earlier ones. `made`: events of this
        batch."""
        events = {e for e in made if not e.passed}
        if events:
            self._under_way.append(events)
        if len(self._under_way) > _UNDER_WAY:
            for event in self._under_way.popleft():
                if not event.done():
                    event.wait()

    def _take(self) -> _Value:
        """The next value of this epoch. Raises StopIteration at its end."""
        if self._is_quick:
            return one_pipeline.take(self)
        while True:
            batches = self._run_in_epoch()
            keep = [self.batch_size] * len(batches) if self._epochs is None else self._epochs.keep(self._step)
            self._step += 1
            parts = [Batch(b, self._belonging(p, b, k)) for p, b, k in zip(self._pipes, batches, keep)]
            # Skips a batch without samples left by on_error="skip".
            if any(keep) and not any(len(b[0]) for b in batches):
                continue
            return self._convert(parts)

    def _run_in_epoch(self) -> list[tuple[Any, ...]]:
        """Like `_run`, within this epoch. Raises StopIteration at its end."""
        return self._in_epoch(self._run)

    def _in_epoch(self, run: Callable[[], _Outputs]) -> _Outputs:
        """Returns `run()`, within this epoch. Raises StopIteration at its end."""
        while not self._at_end():
            try:
                return run()
            except StopIteration:
                if not self._continues:
                    raise
                self._rewind()  # the source ended with the previous epoch, or before `size`
            except Exception:
                self._step += 1  # a failed batch counts as part of the epoch
                raise
        raise StopIteration

    def _at_end(self) -> bool:
        return self._ended or self._at_size()

    def _at_size(self) -> bool:
        return self._epochs is not None and self._step >= self._epochs.epoch.batches

    def _rewind(self) -> None:
        """Resets the sources of all pipelines to the start of their next epoch."""
        for p in self._pipes:
            p.reset()
        self._running = self._continues = False

    def _belonging(self, pipe: Pipeline, outputs: Sequence[Any], keep: int) -> int:
        """Number of samples that belong to the epoch. Some may already have been omitted by on_error="skip"."""
        n = len(outputs[0])
        if keep >= self.batch_size:
            return n
        rows = pipe.sample_indices()
        return min(keep, n) if rows is None else int(np.searchsorted(rows, keep))

    def __next__(self) -> _Value:
        if self._first:
            value: _Value = self._first.pop()
        else:
            if self._ended:
                raise StopIteration
            try:
                value = self._take()
            except StopIteration:
                self._ended = True
                self._arrived = None if self._epochs is None or self._at_size() else self._step
                if self._auto_reset == "yes":
                    self.reset()
                raise
        self._given += 1
        return value

    def next(self) -> _Value:
        """Returns the next batch, as `next(iterator)`."""
        return self.__next__()

    def __iter__(self) -> Iterator[_Value]:
        # Loops that use the length, such as Lightning's, stop before StopIteration.
        counted = self._epochs is not None and self._step >= self._epochs.epoch.batches and not self._first
        if (self._ended or counted) and self._auto_reset != "raise":
            self.reset()
        return self

    def reset(self) -> None:
        """Begins the next epoch.

        In the middle of an epoch, the rest is dropped: the readers go to the beginning of their next epoch, and nothing
        that was prepared ahead is returned. At the beginning of an epoch, it has no effect.
        """
        if not self._given and not self._ended:
            return
        if self._epochs is not None and self._step >= self._epochs.epoch.batches:
            self._continues = True
            for _ in range(self._epochs.epoch.dropped):
                try:
                    self._run()
                except StopIteration:
                    break
                except (PipelineError, IteratorError):
                    pass  # this batch is dropped anyway
            self._epochs.advance()
        else:
            self._rewind()
            if self._epochs is not None:
                self._epochs.restart()
        self._first.clear()
        self._step = self._given = 0
        self._ended = False

    def __len__(self) -> int:
        """Number of batches in this epoch, or in the last one if the sources ended before `size` there; 0 without
        `reader_name` and `size`. With on_error="skip", batches without any samples left are counted too."""
        if self._epochs is None:
            return 0  # as in DALI
        return self._epochs.epoch.batches if self._arrived is None else self._arrived

    def checkpoints(self) -> list[bytes]:
        """Returns the position of the iterator: a checkpoint for each pipeline. An iterator over pipelines that were
        built with them as `checkpoint=`, and with `enable_checkpointing=True`, continues from there, also in
        mid-epoch."""
        for p in self._pipes:
            p._checkpoints.check_enabled()
        states = self._before_first if self._first else resume.states(self)
        return [p._save_checkpoint(state, own) for p, (state, own) in zip(self._pipes, states)]

    def __repr__(self) -> str:
        length = f"{len(self)} batches" if self._epochs is not None else "unknown length"
        names = ", ".join(self._names)
        what = f"{len(self._pipes)} pipeline(s), batch_size={self.batch_size}, {length} in this epoch"
        return f"<{type(self).__name__} ({names}): {what}>"


if TYPE_CHECKING:
    from .own_iterators import DaliBaseIterator as _DaliBaseIterator  # noqa: F401
else:

    def __getattr__(name):
        if name == "_DaliBaseIterator":
            from .own_iterators import DaliBaseIterator

            return DaliBaseIterator
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
