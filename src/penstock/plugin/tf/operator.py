# SPDX-License-Identifier: Apache-2.0
"""Pipelines as operators of TensorFlow graphs, for TensorFlow 1 programs."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ...pipeline import Pipeline
from ...types import to_numpy_type
from ..base_iterator import Batch, DaliIterator
from ..sparse import coordinates
from .copies import Copier
from .dataset import own_batch_size, pipeline_arguments
from .elements import Elements, check_type


class _Batches(DaliIterator):
    """Returns the arrays of a batch as a flat list: one per dense output, three per sparse one. Restarts after its end,
    which TensorFlow reports as OutOfRangeError."""

    def __init__(self, pipeline: Pipeline, elements: Elements, is_sparse: Sequence[bool]):
        self.elements, self.is_sparse = elements, is_sparse
        names = [str(i) for i in range(elements.n_outputs)]
        super().__init__(pipeline, names, auto_reset="yes", prepare_first_batch=False)

    def _convert(self, batches: list[Batch]) -> list[np.ndarray]:
        (batch,) = batches
        values: list[np.ndarray] = []
        for i, output in enumerate(batch.outputs):
            values += self._coordinates(output, i) if self.is_sparse[i] else [self.elements.one(output, i, batch.keep)]
        return values

    def _coordinates(self, output: Any, i: int) -> list[np.ndarray]:
        dtype = np.dtype(to_numpy_type(output.dtype))
        check_type(i, dtype, self.elements.type_of(i))
        host = output.as_cpu()
        index, values, shape = coordinates([host.at(k) for k in range(len(host))], output.ndim(), dtype)
        return [np.ascontiguousarray(index.T), values, np.array(shape, "i8")]

    def close(self) -> None:
        for p in self._pipes:
            p.close()


@tf.autograph.experimental.do_not_convert
def DALIIteratorWrapper(
    pipeline: Pipeline | None = None,
    serialized_pipeline: str | bytes | None = None,
    sparse: Sequence[bool] = (),
    shapes: Sequence[Any] = (),
    dtypes: Sequence[Any] = (),
    batch_size: int = -1,
    prefetch_queue_depth: int | dict[str, int] = 2,
    exec_dynamic: bool | None = None,
    **kwargs: Any,
) -> list[Any]:
    """Returns an operator that returns the next batch of a pipeline each time it is executed: a list with one tensor
    per output.

    For graphs, of `tf.function` and of TensorFlow 1; otherwise use `DALIDataset`. In eager mode, calls with the same
    pipeline and arguments continue where the last one ended.

    Parameters
    ----------
    pipeline, serialized_pipeline
        One of them. The pipeline is copied.
    sparse
        Whether each output becomes a `tf.SparseTensor` of all elements, (batch, largest extents...); the samples of a
        batch may then differ in shape.
    shapes
        The shape of each output, the batch first; () if it is not known.
    dtypes
        The type of each output.
    batch_size
        By default the first extent of the first shape, or else the pipeline's own.
    prefetch_queue_depth, exec_dynamic, num_threads, device_id, exec_separated
        As in `DALIDataset`; other keyword arguments of DALI's operator have no effect.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=lambda i: np.int32([[i], [i]]))
    >>> p = pipe()
    >>> @tf.function
    ... def step():
    ...     (x,) = DALIIteratorWrapper(p, shapes=[(2, 1)], dtypes=[tf.int32])
    ...     return tf.reduce_sum(x)
    >>> [int(step()) for _ in range(3)]
    [0, 2, 4]
    """
    if (pipeline is None) == (serialized_pipeline is None):
        raise ValueError("give either a pipeline or a serialized_pipeline")
    source = serialized_pipeline if pipeline is None else pipeline
    kwargs |= {"batch_size": batch_size, "prefetch_queue_depth": prefetch_queue_depth, "exec_dynamic": exec_dynamic}
    values = iter(_run(source, shapes, dtypes, sparse, **kwargs))
    flags = [*map(bool, sparse), *[False] * len(dtypes)][: len(dtypes)]
    return [
        tf.SparseTensor(next(values), next(values), next(values)) if is_sparse else next(values) for is_sparse in flags
    ]


def DALIIterator() -> Callable[..., list[Any]]:
    """`DALIIteratorWrapper`, as programs for DALI ask for it."""
    return DALIIteratorWrapper


def DALIRawIterator() -> Callable[..., list[Any]]:
    """Returns the operator of a serialised pipeline, `operator(serialized_pipeline=, shapes=, dtypes=, ...)`. Same as
    `DALIIteratorWrapper`, but a sparse output is three tensors: index, values and shape."""
    return _raw


@tf.autograph.experimental.do_not_convert
def _raw(
    serialized_pipeline: str | bytes, shapes: Sequence[Any], dtypes: Sequence[Any], sparse: Any = (), **kwargs: Any
) -> list[Any]:
    return _run(serialized_pipeline, shapes, dtypes, sparse, **kwargs)


def _run(
    source: Any,
    shapes: Sequence[Any],
    dtypes: Sequence[Any],
    sparse: Sequence[bool],
    *,
    batch_size: int = -1,
    num_threads: int | None = None,
    device_id: int | None = None,
    exec_separated: bool = False,
    exec_dynamic: bool | None = None,
    prefetch_queue_depth: Any = None,
    cpu_prefetch_queue_depth: int | None = None,
    gpu_prefetch_queue_depth: int | None = None,
    enable_memory_stats: bool = False,
    name: str | None = None,
) -> list[Any]:
    """The tensors of one operator, as a flat list. In eager mode, those of one execution."""
    if not isinstance(source, (Pipeline, str, bytes)):
        raise TypeError(f"pipeline takes a Pipeline; got {type(source).__name__}")
    if not dtypes:
        raise ValueError("dtypes takes the type of each output, such as [tf.float32, tf.int32]")
    shapes = [None if isinstance(s, (tuple, list)) and not s else s for s in shapes]
    if batch_size == -1 and shapes and shapes[0] is not None:
        batch_size = next(iter(tf.TensorShape(shapes[0])), None) or -1
    depth = cpu_prefetch_queue_depth if exec_separated and cpu_prefetch_queue_depth else prefetch_queue_depth
    wanted = batch_size if batch_size != -1 else None
    arguments = pipeline_arguments(exec_separated, exec_dynamic, wanted, num_threads, device_id, depth)
    is_sparse = [*map(bool, sparse), *[False] * len(dtypes)][: len(dtypes)]

    def make() -> _Batches:
        pipeline = source if isinstance(source, Pipeline) else Pipeline.deserialize(source)
        own_batch_size(pipeline, arguments)
        elements = Elements(tuple(dtypes), tuple(shapes) or None, pipeline.num_outputs)
        return _Batches(Copier(pipeline, arguments, {})(), elements, is_sparse)

    if not tf.executing_eagerly():
        return _operator(make(), name)
    key = (source, str((arguments, shapes, dtypes, is_sparse)))
    if key not in _kept:
        _kept[key] = make()
        while len(_kept) > 8:
            _kept.popitem(last=False)[1].close()
    return _operator(_kept[key], name)


# Iterators with which calls in eager mode continue.
_kept: OrderedDict[Any, _Batches] = OrderedDict()


def _operator(batches: _Batches, name: str | None) -> list[Any]:
    elements = batches.elements
    types: list[tf.DType] = []
    shapes: list[Any] = []
    for i, is_sparse in enumerate(batches.is_sparse):
        dtype = elements.type_of(i)
        types += [tf.int64, dtype, tf.int64] if is_sparse else [dtype]
        shapes += [(None, None), (None,), (None,)] if is_sparse else [elements.shapes[i]]
    values = tf.nest.flatten(tf.numpy_function(batches.__next__, [], types, stateful=True, name=name))
    for value, shape in zip(values, shapes):
        value.set_shape(shape)
    return values
