# SPDX-License-Identifier: Apache-2.0
"""Reads the samples of a data set in Python."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.op import Arg
from ...core.picks import Picks
from ...core.source import Loading
from ...core.source_name import SourceName, SourceNames
from ...external import samples
from ...external.calling import Calling
from ..external._arguments import of_output
from ._columns import Columns
from ._sharded import ShardedSource


class Dataset(ShardedSource):
    """Reads a data set of your own: arrays, or any object with `len()` and `[i]`, such as PyTorch's data sets.

    `source` is one of:

    * an object with `__len__` and `__getitem__`: `source[i]` is a sample, or with `num_outputs` a tuple of the outputs;
    * a tuple of such objects of the same length, as in PyTorch's `TensorDataset`: each is an output.

    The order is that of all readers: `shuffle`, `weights`, `num_shards`, `fn.mix` and checkpoints work. Calls of
    `len()` and `[i]` must always give the same results.

    NumPy arrays, also memory-mapped ones (`np.load(path, mmap_mode="r")`), are read where they are, by the native
    threads of the pipeline, which hold no lock of Python's: don't change them while a pipeline uses them. Other objects
    are asked for one sample after the other, by a thread of the pipeline, while earlier batches are processed. With
    `parallel=True` several workers are asked at the same time: processes, or threads, see `Pipeline(py_num_workers=,
    py_start_method=)`.

    Samples may be arrays of NumPy and PyTorch, Pillow's images, anything with DLPack or `__array__`, numbers and lists
    of them, bytes, and strings; bytes and strings (as UTF-8) become uint8 of shape (bytes,). If `[i]` raises an
    exception, i is a bad sample (see `on_error` of the pipeline).

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> images, captions = np.zeros((4, 6, 8, 3), np.uint8), ["a cat", "a dog", "a bird", "a fish"]
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return tuple(fn.readers.dataset((images, captions), layout=["HWC", ""]))
    >>> pictures, texts = pipe().run()
    >>> pictures.as_array().shape, bytes(texts.at(1))
    ((2, 6, 8, 3), b'a dog')
    """

    module = "readers"
    positional = ("source", "num_outputs")
    source = Arg(object, doc="The data set, or a tuple of them.")
    num_outputs = Arg(
        int,
        None,
        "Number of items of each sample, which is a tuple then; the operator returns a list. A tuple of data sets "
        "needs none.",
    )
    layout = Arg(object, None, "Layout of the samples, as one value for all outputs or a list.")
    parallel = Arg(bool, False, "Whether the pipeline's workers read samples, concurrently.")
    timeout = Arg(
        float,
        None,
        "With `parallel`: number of seconds after which a sample that a worker has not read is a bad one. By default "
        "there is a warning after 30 s, which shows where the data set is in its code.",
    )

    def setup(self) -> None:
        super().setup()
        v = self.values
        self.columns = v["source"] if isinstance(v["source"], Columns) else Columns(v["source"], v["num_outputs"])
        v["source"] = self.columns  # opaque, so that arrays are not taken for arguments
        if v["timeout"] is not None and not (v["parallel"] and v["timeout"] > 0):
            raise ValueError(f"timeout takes a positive number of seconds, with parallel=True; got {v['timeout']}")
        # Called for the outputs that are no arrays in memory.
        self.by_call = self.columns.by_call
        self.is_parallel = bool(v["parallel"] and self.by_call)
        self.calling = Calling(
            self.columns.to_call(), True, len(self.by_call), None, False, (None,) * len(self.by_call)
        )
        self.calling.leaves_out = True
        self.workers: Any = None  # the pipeline's, or a thread
        self.number, self.pid = 0, 0
        self.kinds: dict[int, tuple[np.dtype, int, str]] = {}  # by output, of the first batch

    def n_outputs(self) -> int:
        return self.columns.n_outputs if isinstance(self.values["source"], Columns) else 1

    def returns_list(self) -> bool:
        return self.columns.returns_list

    def join(self, pool: Any, index: int) -> None:
        """The worker pool reads samples, as from its source number `index`."""
        self.workers, self.number = pool, index

    @property
    def batches_ahead(self) -> int:
        return self.values["prefetch_queue_depth"] if self.by_call else 0

    def found(self) -> int:
        if not len(self.columns):
            raise ValueError("there are no samples in what was given")
        return len(self.columns)

    def fingerprint(self) -> int:
        return zlib.crc32(repr(self.columns.kinds).encode())

    def source_name(self, index: int) -> SourceName:
        return SourceName(f"{self.columns.described_as}, sample {index}", f"sample {index}")

    def begin(self, picks: Picks, io: kernels.Pool) -> Loading:
        if self.by_call and not self.is_parallel and (self.workers is None or self.pid != os.getpid()):
            from ...external.threads import ThreadPool  # imported here to keep `import penstock` fast

            self.workers, self.pid = ThreadPool([self.calling], 1, [True]), os.getpid()
        return _Reading(self, np.ascontiguousarray(picks.columns["index"], np.dtype("i8")))

    def close(self) -> None:
        super().close()
        if self.workers is not None:
            self.workers.close()


class _Reading(Loading):
    """A batch that is being read."""

    def __init__(self, reader: Dataset, index: np.ndarray):
        self._reader, self._index, self._job = reader, index, None
        if reader.by_call and len(index):
            place = (reader.number, 0, 0, 0, len(index), reader._batch_size)
            self._job = reader.workers.schedule(*place, tuple(index.tolist()))

    def wait(self) -> tuple[Batch, ...]:
        reader, n = self._reader, len(self._index)
        sources = SourceNames(reader.source_name, self._index)
        made: dict[int, Batch] = {}
        bad: dict[int, str] = {}
        if self._job is not None:
            found = reader.workers.wait(self._job)
            bad = self._job.bad
            made = {k: samples.spread(b, n, bad) for k, b in zip(reader.by_call, found)}
        batches = []
        for k in range(reader.columns.n_outputs):
            batch = made[k] if k in made else reader.columns.rows(k, self._index)
            batch.sources = sources
            self._check(k, batch, len(bad) == n)
            batches.append(batch)
        if bad:
            raise SampleErrors(bad, sources, tuple(batches))
        return tuple(batches)

    def _check(self, k: int, batch: Batch, is_bad: bool) -> None:
        """Sets the layout. Raises DataError if a batch is not of the same kind as the first one."""
        batch.spec.layout = layout = of_output(self._reader.values["layout"], k) or ""
        if is_bad:
            return
        samples.check(batch, k, None, None, layout)
        samples.check_unchanged(batch, k, self._reader.kinds, "samples of the data set")
