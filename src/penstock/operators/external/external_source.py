# SPDX-License-Identifier: Apache-2.0
"""Samples from the user's own Python code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.errors import DataError, SampleErrors
from ...core.kernels import Pool
from ...core.op import Arg
from ...core.picks import Picks
from ...core.source import Source
from ...external import samples
from ...external.ahead import Ahead, Position
from ...external.calling import CYCLES, Calling
from ._arguments import check, check_parallel, number_type, of_output
from ._by_sample import Made, batches_of, call_each, warn_of_rest
from ._called import Called
from ._fed import Feed
from ._picks import Given, Names
from ._resume import Resumable

_MOST_BAD = 1000  # consecutive bad samples after which the source is considered broken


class ExternalSource(Resumable, Source):
    """Feeds data from Python: from a callable, an iterable, or `Pipeline.feed_input`.

    In batch mode, a call returns the samples of a batch as an array (n, ...) or a list of arrays; a batch may be
    smaller than the pipeline's. With `batch=False`, the source is called once per sample with a `SampleInfo`.
    StopIteration ends the epoch. With `num_outputs`, each call returns a tuple, and the operator returns a list of
    DataNodes.

    Arrays may be from NumPy, PyTorch or CuPy, anything with DLPack or `__array__`, or nested lists of numbers; Python
    numbers become int32 and float32. Returned data is copied, unless nothing else refers to it or `no_copy` is set. If
    an output is used only on the GPU, as with `device="gpu"`, data that is already there is copied on the GPU: the copy
    begins once the array has been made, and ends before later work on its stream.

    By default, the thread that calls `Pipeline.run` calls the source, `prefetch_queue_depth` batches ahead. With
    `background=True`, a thread of the pipeline calls it.

    With `parallel=True`, worker processes call the source (`Pipeline(py_num_workers=, py_start_method=)`): all of them
    call a callable that takes one argument, at the same time; one of them iterates over an iterable. Samples are
    returned through shared memory without another copy. If the source raises an exception, `Pipeline.run` raises it,
    with the worker's traceback as its cause.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=lambda info: np.int32([info.idx_in_epoch]), batch=False)
    >>> pipe().run()[0].as_array().tolist()
    [[0], [1]]
    """

    devices = ("cpu", "gpu")
    sets_batch_size = True
    positional = ("source", "num_outputs")
    source = Arg(object, None, "A callable, an iterable, or a generator function; None to use `feed_input`.")
    num_outputs = Arg(int, None, "Number of outputs; if given, the operator returns a list.")
    cycle = Arg(
        object,
        None,
        'What happens at the end of an iterable: None, False or "no" stops for good, True or "quiet" starts again, '
        '"raise" raises StopIteration and starts again after `Pipeline.reset`.',
    )
    dtype = Arg(object, None, "Required type of the data, as one value for all outputs or a list.")
    ndim = Arg(object, None, "Required number of dimensions of samples, as one value for all outputs or a list.")
    layout = Arg(object, None, "Layout of the samples, as one value for all outputs or a list.")
    batch = Arg(bool, None, "Whether the source returns whole batches (the default) or single samples.")
    batch_info = Arg(
        bool, False, "In batch mode, passes a `BatchInfo` to the callable instead of the number of the iteration."
    )
    repeat_last = Arg(bool, False, "Repeats the last data if `feed_input` was not called again.")
    no_copy = Arg(
        bool,
        False,
        "Uses the data in place; it must not change until its batch has been used. Parallel sources never need a "
        "second copy.",
    )
    blocking = Arg(bool, False, "Whether to wait for `feed_input`. By default an error is raised if there is no data.")
    background = Arg(
        bool,
        False,
        "Whether a thread of the pipeline calls the source, ahead of time. By default the thread that calls "
        "`Pipeline.run` does.",
    )
    parallel = Arg(bool, None, "Whether workers call the source, ahead of time and concurrently.")
    prefetch_queue_depth = Arg(
        int,
        None,
        "Number of batches that workers make ahead. By default 1, or the number of workers if each call returns a "
        "whole batch.",
    )
    bytes_per_sample_hint = Arg(
        [int],
        None,
        "For parallel sources: expected size of a sample in bytes, as one value for all outputs or a list. By default "
        "it is measured on the first batches.",
    )
    timeout = Arg(
        float,
        None,
        "For parallel sources: number of seconds after which a call that has not returned is an error. By default "
        "there is a warning after 30 s, which shows where the source is in its code.",
    )
    retries = Arg(
        int,
        0,
        "Maximum number of times that a call that raises is repeated, after pauses of 0.1 s, doubled each time up to "
        "5 s. Callables only.",
    )
    last_batch = Arg(
        str,
        None,
        "For sources called per sample: what happens to the last samples of an epoch if they don't fill a batch: "
        "'drop' discards them, 'partial' returns a smaller batch. By default they are discarded with a warning.",
    )
    cuda_stream = Arg(
        object,
        None,
        "The stream that makes arrays on the GPU, if the arrays don't name it, and may overwrite them later. -1: none; "
        "the source then waits until arrays are copied.",
        hidden=True,
    )
    use_copy_kernel = Arg(bool, None, "Accepted for compatibility.", hidden=True)

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        """Sources run on the CPU; `device="gpu"` copies their data to the GPU, unless it is already there."""
        if kwargs.get("device") != "gpu":
            return None
        outputs = call(cls, inputs, {**kwargs, "device": "cpu"})
        return [o.gpu() for o in outputs] if isinstance(outputs, list) else outputs.gpu()

    def setup(self) -> None:
        v = self.values
        if not any(v["cycle"] is c or (isinstance(c, str) and v["cycle"] == c) for c in CYCLES):
            raise ValueError(f"cycle takes True, False, 'no', 'quiet' or 'raise'; got {v['cycle']!r}")
        if v["num_outputs"] is not None and v["num_outputs"] < 1:
            raise ValueError(f"num_outputs takes a positive integer; got {v['num_outputs']}")
        for layout in v["layout"] if isinstance(v["layout"], (list, tuple)) else [v["layout"]]:
            if not (layout is None or isinstance(layout, str)):
                raise TypeError(f"layout takes a string, or a list with one for each output; got {v['layout']!r}")
        self.per_sample = v["batch"] is False
        self.is_parallel = bool(v["parallel"])
        self.position, self.ended, self.ended_early = Position(), False, False
        self.n_bad = 0  # consecutive bad samples, in batches without a good one
        self.told_of_rest, self.room = v["last_batch"] is not None, 0
        self.run_ahead: Ahead | None = None
        self.calling: Calling | None = None
        self.kinds: dict[int, tuple[np.dtype, int, str]] = {}  # by output, of the first batch
        self.called: Called | None = None
        self.memories: Mapping[int, Any] = MappingProxyType({})  # by output, the allocator for copies
        self.on_gpu: Mapping[int, Any] = MappingProxyType({})  # by output, what accepts data in GPU memory
        self.number_types = [number_type(of_output(v["dtype"], i)) for i in range(self.n_outputs())]
        self.feeding = Feed(v["name"], v["repeat_last"], v["blocking"])
        if v["source"] is not None:
            how = (self.per_sample, v["num_outputs"], v["cycle"], v["batch_info"], self.number_types)
            self.calling = Calling(v["source"], *how, v["retries"], v["last_batch"] == "partial")
            self.calling.stream = v["cuda_stream"]
        check(v, self.calling)
        if self.is_parallel:
            check_parallel(v, self.calling)
        elif self.calling is not None and not v["background"]:
            self.called = Called()
        self.may_end = self.calling is not None and self.called is None

    def defined(self) -> None:
        if self.calling is not None and not self.is_parallel:
            self.calling.begin()  # as in DALI

    def leave_bad_samples(self) -> None:
        """Exceptions of the source for a sample are handled by the pipeline's `on_error`, which is not "raise"."""
        if self.calling is not None:
            self.calling.leaves_out = self.per_sample

    def n_outputs(self) -> int:
        return self.values["num_outputs"] or 1

    def returns_list(self) -> bool:
        return self.values["num_outputs"] is not None

    def open(self, max_batch_size: int, seed: int) -> None:
        self.room = max_batch_size
        if self.run_ahead is not None:
            self.run_ahead.room = max_batch_size
        if self.gpu is not None and not self.is_parallel:
            self.memories = dict.fromkeys(self.uploaded, self.gpu.host_memory)
            self.on_gpu = dict.fromkeys(self.uploaded, self.gpu.inputs(not self.values["no_copy"]))

    def join(self, pool: Any, index: int) -> None:
        """The worker pool calls the source, as its source number `index`."""
        assert self.calling is not None
        depth = self.values["prefetch_queue_depth"]
        if depth is None:
            depth = 1 if self.per_sample or self.calling.is_iterable else pool.n_workers
        self.run_ahead = Ahead(pool, index, depth, self.room)

    def close(self) -> None:
        if self.run_ahead is not None:
            self.run_ahead.close()

    # Feeding --------------------------------------------------------------------------------------------------------

    def is_fed(self) -> bool:
        return self.calling is None

    def feed(self, data: Any, layout: str | None, stream: Any = None) -> None:
        """Data for one iteration. Copied unless `no_copy`."""
        if not self.is_fed():
            raise RuntimeError("this external_source has its own source and can't be fed")
        outputs = [data]
        if self.returns_list():
            outputs = list(data)
            if len(outputs) != self.n_outputs():
                raise DataError(f"{len(outputs)} outputs were fed, num_outputs is {self.n_outputs()}")
        layouts = [layout or samples.layout_of(o) for o in outputs]
        made_by = self.values["cuda_stream"] if stream is None else stream
        outputs = samples.samples_of(outputs, self.number_types, made_by, self.on_gpu)
        batches = samples.batches_of(outputs, not self.values["no_copy"], self.copier, self.memories)
        self._check(batches, self.room, layouts)
        self.feeding.put(batches)

    @property
    def is_prompt(self) -> bool:  # type: ignore[override]
        return self.is_fed() and not self.values["blocking"]

    def has_data(self) -> bool:
        return not self.is_fed() or len(self.feeding) > 0

    def ask(self) -> None:
        if self.is_fed():
            self.feeding.ask()

    # Epochs ---------------------------------------------------------------------------------------------------------

    def restarts(self) -> bool:
        return self.calling is not None and self.calling.restarts

    def reset(self) -> None:
        if self.restarts() and self.run_ahead is not None:
            self.run_ahead.drop()
        if self.calling is not None:
            if self.called is not None:
                self.called.clear()
            self.position, self.ended, self.ended_early = self.position.next_epoch(), False, False
            self.calling.restart()

    def state(self) -> dict[str, int] | None:
        return self._state() if self.called is None else self.called.place(self)[0]

    def _state(self) -> dict[str, int] | None:
        if self.calling is None or not self.calling.takes_argument:
            return None
        return {**self.position._asdict(), "ended": int(self.ended)}

    def place(self) -> tuple[dict[str, int] | None, dict[str, Any] | None]:
        return self._state(), self._saved() if self.keeps_state else None

    def restore(self, state: dict[str, int]) -> None:
        if self.called is not None:
            self.called.clear()
        self.position = Position(state["epoch"], state["iteration"], state["in_epoch"])
        self.ended, self.ended_early = bool(state["ended"]), False

    def begins_epoch(self, state: dict[str, int]) -> bool:
        return not state["iteration"] and not state["ended"]

    # Batches --------------------------------------------------------------------------------------------------------

    def take(self, n: int, iteration: int) -> Picks:
        if self.is_fed():
            made = Made(self.feeding.take(iteration, lambda: self.closing), {})
            self._check(made.batches, n)
        elif self.called is None:
            made = self.make(n)
        else:
            made = self.called.take(iteration)
            self._check_size(made.batches, n)  # another source may have reduced the batch size since
        return Given(made)

    def make(self, n: int) -> Made:
        """The next batch. Raises StopIteration if the source has ended."""
        assert self.calling is not None
        position = self.position
        try:
            if self.ended_early:
                raise StopIteration
            batches, made, bad = self._ahead(n) if self.run_ahead is not None else self._call(n)
            self._check(batches, n)
            self._check_bad(made, bad)
        except StopIteration as e:
            self.ended = True
            if self.per_sample and e.value and not self.told_of_rest:
                self.told_of_rest = True
                warn_of_rest(self.calling.name, e.value, position, n)
            raise StopIteration from None
        except DataError as e:
            self.position = position.after(n)
            raise type(e)(self._named(str(e), position)) from e.__cause__
        except Exception:
            self.position = position.after(n)
            raise
        self.position = position.after(made)
        self.ended_early = self.per_sample and made < n
        batches = [samples.spread(b, made, bad) for b in batches]
        for b in batches:
            b.sources = Names(self.calling.name, position, len(b))
        return Made(batches, bad)

    def _check_bad(self, n: int, bad: dict[int, str]) -> None:
        """Raises DataError after `_MOST_BAD` consecutive bad samples: then the source itself is probably broken."""
        self.n_bad = self.n_bad + n if n and len(bad) == n else 0
        if self.n_bad >= _MOST_BAD:
            raise DataError(f"none of the last {self.n_bad} samples could be made; the last one: {bad[n - 1]}")

    def _named(self, text: str, position: Position) -> str:
        """Adds the source and the iteration to the text of an error, if missing."""
        assert self.calling is not None
        if self.calling.name in text:
            return text
        return f"{text}\nfrom {self.calling.name}, iteration {position.iteration}, epoch {position.epoch}"

    def _ahead(self, n: int) -> tuple[list[Batch], int, dict[int, str]]:
        assert self.run_ahead is not None
        p = self.position
        return self.run_ahead.take(p, n) if self.per_sample else self.run_ahead.take(Position(p.epoch, p.iteration), 0)

    def _call(self, n: int) -> tuple[list[Batch], int, dict[int, str]]:
        """Calls the source in this thread. Returns the same as `Ahead.take`."""
        calling, p, copy = self.calling, self.position, not self.values["no_copy"]
        assert calling is not None
        if not self.per_sample:
            outputs = calling.outputs(calling.batch(p.iteration, p.epoch))
            layouts = [samples.layout_of(o) for o in outputs]
            outputs[:] = samples.samples_of(outputs, self.number_types, calling.stream, self.on_gpu)
            batches = samples.batches_of(outputs, copy, self.copier, self.memories)
            self._check(batches, n, layouts)
            return batches, len(batches[0]), {}
        columns, made, bad = call_each(calling, p, n, self.number_types, self.on_gpu)
        return batches_of(columns, copy, self.copier, self.memories), made, bad

    def _check(self, batches: list[Batch], n: int, layouts: list[str] | None = None) -> None:
        """Sets the layouts of batches. Raises DataError if they do not match the arguments or the first batch."""
        v, sizes = self.values, {len(b) for b in batches}
        if len(sizes) > 1:
            raise DataError(f"the outputs have {sorted(sizes)} samples; all need the same number")
        self._check_size(batches, n)
        for i, b in enumerate(batches):
            b.spec.layout = samples.layout_for(i, of_output(v["layout"], i), layouts[i] if layouts else b.spec.layout)
            if not len(b) and type(b) is Batch:
                declared = of_output(v["dtype"], i), of_output(v["ndim"], i)
                batches[i] = samples.nothing(b.spec, *self.kinds.get(i, declared)[:2])
            if not len(b):
                continue
            samples.check(b, i, of_output(v["dtype"], i), of_output(v["ndim"], i), b.spec.layout)
            samples.check_unchanged(b, i, self.kinds, "data fed to the external source")

    def _check_size(self, batches: list[Batch], n: int) -> None:
        if len(batches[0]) <= n:
            return
        what = (
            f"the pipeline's batch_size allows at most {n}"
            if n == self.room
            else f"another source has given {n}: all sources of a pipeline give batches of one size"
        )
        text = f"got a batch of {len(batches[0])} samples; {what}"
        names = batches[0].sources
        raise DataError(self._named(text, names.position) if isinstance(names, Names) else text)

    def load(self, picks: Picks, io: Pool) -> tuple[Batch, ...]:
        assert isinstance(picks, Given)
        self.feeding.taken = None
        if self.called is not None:
            self.called.done()
        rows = picks.columns["row"]
        batches = tuple(
            b if picks.is_whole or (len(rows) == len(b) and (rows == np.arange(len(b))).all()) else b.take(rows)
            for b in picks.batches
        )
        bad = {i: picks.bad[row] for i, row in enumerate(rows.tolist()) if row in picks.bad} if picks.bad else None
        if bad:
            raise SampleErrors(bad, batches[0].sources, batches)
        return batches

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks | None:
        """The next samples of the same batch, as no other samples are available."""
        assert isinstance(picks, Given)
        n = len(picks.batches[0])
        if len(picks.bad) == n:
            return None
        return Given(picks.made, (picks.columns["row"][rows] + 1) % n)
