# SPDX-License-Identifier: Apache-2.0
"""Samples from the user's own Python code."""

from __future__ import annotations

import inspect
import queue
from collections import deque
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ...core.batch import Batch, Borrowed
from ...core.dtypes import DALIDataType, to_numpy
from ...core.kernels import Pool
from ...core.op import Arg, Layout, Picks, Source
from ...core.sample_info import BatchInfo, SampleInfo


class ExternalSource(Source):
    """Feeds data from Python: from a callable, an iterable, or `Pipeline.feed_input`.

    In batch mode a call returns the samples of a batch as an array (n, ...) or a list of arrays; the batch may be
    smaller than
    the pipeline's. With `batch=False` it is called once per sample with a `SampleInfo`. StopIteration ends the epoch.
    With `num_outputs` each call returns a tuple, and the operator a list of DataNodes.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=lambda info: np.int32([info.idx_in_epoch]), batch=False)
    >>> pipe().run()[0].as_array().tolist()
    [[0], [1]]
    """

    sets_batch_size = True
    source = Arg(object, None, "A callable, an iterable, or a generator function; None to use `feed_input`.")
    num_outputs = Arg(int, None, "Number of outputs; if given, the operator returns a list.")
    cycle = Arg(
        object,
        None,
        'What follows the end of an iterable: None or False stops for good, True or "quiet" starts again, "raise" '
        "raises StopIteration and starts again with `Pipeline.reset`.",
    )
    dtype = Arg(object, None, "Type that the data must have; one for all outputs or a list.")
    ndim = Arg(object, None, "Number of dimensions that samples must have; one for all outputs or a list.")
    layout = Arg(object, None, "Layout of the samples; one for all outputs or a list.")
    batch = Arg(bool, None, "Whether the source gives whole batches (the default) or single samples.")
    batch_info = Arg(
        bool, False, "Batch mode: the callable is given a `BatchInfo` instead of the number of the iteration."
    )
    repeat_last = Arg(bool, False, "Without fresh data from `feed_input`, gives the last data again.")
    no_copy = Arg(
        bool, False, "Data given to `feed_input` is used in place; it must not change until its batch has been taken."
    )
    blocking = Arg(bool, False, "Whether to wait for `feed_input`; by default an error is raised.")
    parallel = Arg(bool, None, "Worker processes; not available in this version.")
    prefetch_queue_depth = Arg(int, None, "Batches a parallel source prepares ahead.", hidden=True)
    cuda_stream = Arg(object, None, "Has no effect on the CPU.", hidden=True)
    use_copy_kernel = Arg(bool, None, "Has no effect on the CPU.", hidden=True)

    def setup(self) -> None:
        v = self.values
        if v["parallel"]:
            raise ValueError("fn.external_source: parallel=True is not available in this version; leave it out")
        if v["cycle"] not in (None, False, True, "quiet", "raise"):
            raise ValueError(f"fn.external_source: cycle takes True, False, 'quiet' or 'raise'; got {v['cycle']!r}")
        self.per_sample = v["batch"] is False
        self.fed: deque[list[Batch]] = deque()  # not asked for yet
        self.asked: queue.SimpleQueue[list[Batch] | None] = queue.SimpleQueue()  # one for each iteration asked for
        self.owed = 0  # iterations asked for that wait for data
        self.last: list[Batch] | None = None
        self.iteration = self.epoch = self.in_epoch = 0
        source = v["source"]
        self.iterator: Iterator[Any] | None = None
        self.call: Callable[..., Any] | None = None
        if source is None:
            return
        if inspect.isgeneratorfunction(source) or (not callable(source) and hasattr(source, "__iter__")):
            if self.per_sample:
                raise ValueError("fn.external_source: batch=False needs a callable that takes a SampleInfo")
            self._start_iterator()
        elif callable(source):
            self.call = source
            try:
                self.takes_info = bool(inspect.signature(source).parameters)
            except (TypeError, ValueError):
                self.takes_info = False
        else:
            raise TypeError(f"fn.external_source: source takes a callable or an iterable; got {type(source).__name__}")

    def n_outputs(self) -> int:
        return self.values["num_outputs"] or 1

    def returns_list(self) -> bool:
        return self.values["num_outputs"] is not None

    def _start_iterator(self) -> None:
        source = self.values["source"]
        self.iterator = iter(source() if inspect.isgeneratorfunction(source) else source)

    def feed(self, data: Any, layout: str | None) -> None:
        """Data for one iteration. Copied unless `no_copy`."""
        if not self.is_fed():
            raise RuntimeError("this external_source has a source of its own and can't be fed")
        batches = self._batches(data, layout)
        if self.owed:
            self.owed -= 1
            self.asked.put(batches)
        else:
            self.fed.append(batches)
        if self.values["repeat_last"]:
            for b in batches:
                b.owners = (*b.owners, Borrowed(self))
            self.last = batches

    def restarts(self) -> bool:
        return not self.is_fed() and (self.iterator is None or self.values["cycle"] not in (None, False))

    def is_fed(self) -> bool:
        return self.values["source"] is None

    def has_data(self) -> bool:
        return not self.is_fed() or bool(self.fed)

    def ask(self) -> None:
        if not self.is_fed():
            return
        if not self.fed and self.last is None and self.values["blocking"]:
            self.owed += 1
        else:
            self.asked.put(self.fed.popleft() if self.fed else self.last)

    def take(self, n: int, iteration: int) -> Picks:
        if self.is_fed():
            return self._take(self._asked(), n)
        if self.call is None:
            data = self._next_of_iterator()
        elif self.per_sample:
            infos = (SampleInfo(self.in_epoch + i, i, self.iteration, self.epoch) for i in range(n))
            samples = [self.call(info) if self.takes_info else self.call() for info in infos]
            data = list(zip(*samples)) if self.returns_list() else samples
        else:
            info = BatchInfo(self.iteration, self.epoch) if self.values["batch_info"] else self.iteration
            data = self.call(info) if self.takes_info else self.call()
        return self._take(self._batches(data), n)

    def _batches(self, data: Any, layout: str | None = None) -> list[Batch]:
        outputs = list(data) if self.returns_list() else [data]
        if len(outputs) != self.n_outputs():
            raise ValueError(f"the source gave {len(outputs)} outputs, num_outputs is {self.n_outputs()}")
        batches = [self._batch(o, i, layout) for i, o in enumerate(outputs)]
        # Sources may use their arrays again for the next batch, and what is given out may be written to.
        return batches if self.values["no_copy"] else [b.packed_copy() for b in batches]

    def _take(self, batches: list[Batch], n: int) -> Picks:
        sizes = {len(b) for b in batches}
        if len(sizes) > 1 or max(sizes) > n:
            raise ValueError(
                f"the source gave batches of {sorted(sizes)} samples; all outputs need the same number, at most {n}"
            )
        size = sizes.pop()
        self.iteration += 1
        self.in_epoch += size
        return _Fed(batches, np.arange(size))

    def _asked(self) -> list[Batch]:
        while True:
            try:
                batches = self.asked.get(timeout=0.1)
            except queue.Empty:
                if self.closing:
                    raise RuntimeError("the pipeline was closed while it waited for data") from None
                continue
            if batches is None:
                raise RuntimeError(
                    "no data was fed to this input for the iteration; call Pipeline.feed_input() before run()"
                )
            return batches

    def _next_of_iterator(self) -> Any:
        assert self.iterator is not None
        try:
            return next(self.iterator)
        except StopIteration:
            if self.values["cycle"] in (None, False):
                raise
            self._next_epoch()
            if self.values["cycle"] == "raise":
                raise
            return next(self.iterator)

    def _next_epoch(self) -> None:
        self.epoch += 1
        self.iteration = self.in_epoch = 0
        if self.iterator is not None and self.restarts():
            self._start_iterator()

    def reset(self) -> None:
        self._next_epoch()

    def _of_output(self, name: str, i: int) -> Any:
        value = self.values[name]
        return value[i] if isinstance(value, (list, tuple)) else value

    def _batch(self, data: Any, i: int, layout: str | None) -> Batch:
        layout = layout or self._of_output("layout", i) or ""
        if hasattr(data, "is_dense_tensor"):  # a TensorList
            layout = layout or data.layout()
            data = [data.at(k) for k in range(len(data))]
        if isinstance(data, (list, tuple)):
            batch = Batch.from_samples([_array(s) for s in data], Layout(layout))
        else:
            array = _array(data)
            if array.ndim == 0:
                raise ValueError(
                    "in batch mode the source gives an array whose first axis is the batch, or a list of samples; got "
                    "a scalar"
                )
            batch = Batch.from_array(array, Layout(layout))
        spec, dtype, ndim = batch.spec, self._of_output("dtype", i), self._of_output("ndim", i)
        if dtype is not None and dtype != DALIDataType.NO_TYPE and spec.dtype != to_numpy(dtype):
            raise ValueError(
                f"output {i} of the source has type {spec.dtype.name}, but dtype asks for {to_numpy(dtype).name}"
            )
        if layout and len(layout) != spec.ndim:
            raise ValueError(
                f"output {i} of the source has samples of {spec.ndim} dimensions, which the layout '{layout}' "
                "does not fit"
            )
        if ndim is not None and spec.ndim != ndim:
            raise ValueError(
                f"output {i} of the source has samples of {spec.ndim} dimensions, but ndim asks for {ndim}"
            )
        return batch

    def load(self, picks: Picks, io: Pool) -> tuple[Batch, ...]:
        assert isinstance(picks, _Fed)
        rows = picks.columns["row"]
        return tuple(
            b if len(rows) == len(b) and (rows == np.arange(len(b))).all() else b.take(rows) for b in picks.batches
        )

    def replace(self, picks: Picks, rows: np.ndarray, attempt: int) -> Picks:
        """The next samples of the same batch, as there is no other to be had."""
        assert isinstance(picks, _Fed)
        n = len(picks.batches[0])
        return _Fed(picks.batches, (picks.columns["row"][rows] + 1) % n)


class _Fed(Picks):
    """The batches that the source gave, and which of their rows are meant."""

    def __init__(self, batches: list[Batch], row: np.ndarray):
        super().__init__(row=row)
        self.batches = batches

    def select(self, rows: np.ndarray) -> Picks:
        return _Fed(self.batches, self.columns["row"][rows])

    def put(self, rows: np.ndarray, other: Picks) -> Picks:
        row = self.columns["row"].copy()
        row[rows] = other.columns["row"]
        return _Fed(self.batches, row)


def _array(data: Any) -> np.ndarray:
    if isinstance(data, np.ndarray):
        return data
    if hasattr(data, "__array_interface__") or hasattr(data, "__array__") or not hasattr(data, "__dlpack__"):
        array = np.asarray(data)
        # Python numbers are 32 bit in DALI.
        narrow = {"int64": "i4", "float64": "f4"}.get(array.dtype.name)
        return array.astype(narrow) if narrow and not hasattr(data, "__array__") else array
    return np.from_dlpack(data)
