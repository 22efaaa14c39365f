# SPDX-License-Identifier: Apache-2.0
"""`DALIDatasetWithInputs`: a pipeline that is fed from other datasets."""

from __future__ import annotations

import difflib
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ...core.constructors import names_checked
from ...pipeline import Pipeline
from ..base_iterator import LastBatchPolicy
from .dataset import DALIDataset, placeholders
from .elements import Elements

__all__ = ["DALIDatasetWithInputs", "Input"]


class Input:
    """A dataset that feeds a pipeline's input.

    Parameters
    ----------
    dataset
        A `tf.data.Dataset` of single tensors.
    layout
        The layout of a sample, such as "HWC". By default that of the `external_source`.
    batch
        Whether the elements are batches, the batch axis first, or samples (the default); None uses the setting of the
        `external_source`.
    """

    def __init__(self, dataset: tf.data.Dataset, *, layout: str | None = None, batch: bool | None = False):
        if not isinstance(dataset, tf.data.Dataset):
            raise TypeError(f"Input takes a tf.data.Dataset; got {type(dataset).__name__}")
        self.dataset, self.layout, self.batch = dataset, layout, batch


class DALIDatasetWithInputs(DALIDataset):
    """A `DALIDataset` whose pipeline is fed from other datasets.

    `input_datasets` maps the names of all `external_source` operators without a source to a `tf.data.Dataset` of
    samples, or to an `Input`, which has more options. Samples may differ in shape. Strings become samples of bytes. The
    dataset ends with the first of its inputs; an incomplete last batch is returned, unless `output_shapes` requires
    batches of one size.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(name="x") * 10
    >>> dataset = DALIDatasetWithInputs(pipe(), tf.int64, input_datasets={"x": tf.data.Dataset.range(3)})
    >>> [x.numpy().tolist() for x in dataset]
    [[0, 10], [20]]
    """

    @names_checked
    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: Any = None,
        output_shapes: Any = None,
        fail_on_device_mismatch: bool = True,
        *,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        exec_separated: bool = False,
        exec_dynamic: bool | None = False,
        prefetch_queue_depth: int | dict[str, int] | None = None,
        cpu_prefetch_queue_depth: int = 2,
        gpu_prefetch_queue_depth: int = 2,
        dtypes: Any = None,
        shapes: Any = None,
        reader_name: str | None = None,
        size: int = -1,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        input_datasets: Mapping[str, Input | tf.data.Dataset] | None = None,
    ):
        self._input_datasets = {} if input_datasets is None else input_datasets
        super().__init__(
            pipeline,
            output_dtypes,
            output_shapes,
            fail_on_device_mismatch,
            batch_size=batch_size,
            num_threads=num_threads,
            device_id=device_id,
            exec_separated=exec_separated,
            exec_dynamic=exec_dynamic,
            prefetch_queue_depth=prefetch_queue_depth,
            cpu_prefetch_queue_depth=cpu_prefetch_queue_depth,
            gpu_prefetch_queue_depth=gpu_prefetch_queue_depth,
            dtypes=dtypes,
            shapes=shapes,
            reader_name=reader_name,
            size=size,
            last_batch_padded=last_batch_padded,
            last_batch_policy=last_batch_policy,
        )

    def _replaced_sources(self, pipeline: Pipeline, batch_size: int, elements: Elements) -> dict[str, dict[str, Any]]:
        given = self._input_datasets
        if not isinstance(given, Mapping) or not all(isinstance(k, str) for k in given):
            raise TypeError(f"input_datasets takes a dictionary {{name: dataset}}; got {given!r}")
        nodes = {n.name: n for n in placeholders(pipeline)}
        replaced = {}
        for name, value in given.items():
            if name not in nodes:
                near = difflib.get_close_matches(name, nodes, 1)
                hint = f" Did you mean '{near[0]}'?" if near else ""
                raise ValueError(
                    f"input_datasets: the pipeline has no external source '{name}' without a source; it has "
                    f"{sorted(nodes) or 'none'}.{hint}"
                )
            if not isinstance(value, (Input, tf.data.Dataset)):
                raise TypeError(f"input_datasets takes datasets or Inputs; got {type(value).__name__} for '{name}'")
            wanted = value if isinstance(value, Input) else Input(value)
            read = functools.partial(_joined, batch_size=batch_size, drop=elements.wants_batches_of(batch_size))
            replaced[name] = _source(name, wanted, nodes[name].op.values, read)
        missing = sorted(nodes.keys() - given.keys())
        if missing:
            raise ValueError(
                f"input_datasets: nothing feeds {', '.join(map(repr, missing))}; it has {sorted(given) or 'nothing'}"
            )
        return replaced


def _source(name: str, wanted: Input, source: Mapping[str, Any], joined: Callable[..., Any]) -> dict[str, Any]:
    """The arguments of the external source that reads the dataset."""
    if source["num_outputs"] is not None:
        raise ValueError(f"external source '{name}' has num_outputs, so that no dataset can feed it")
    if not tf.executing_eagerly():
        raise RuntimeError("a dataset with inputs is made in eager mode, outside of tf.function and of graphs")
    own = source["layout"]
    if wanted.layout is not None and own not in (None, "") and own != wanted.layout:
        raise ValueError(f"Input for '{name}' has the layout '{wanted.layout}', its external source '{own}'")
    spec = wanted.dataset.element_spec
    if isinstance(spec, tuple) and len(spec) == 1:
        spec = spec[0]
    if not isinstance(spec, tf.TensorSpec):
        raise TypeError(f"the dataset for '{name}' has to have single dense tensors as elements; it has {spec}")
    is_batch = source["batch"] is not False if wanted.batch is None else bool(wanted.batch)
    if is_batch and spec.shape.rank == 0:
        raise ValueError(f"the dataset for '{name}' gives scalars, which are not batches: pass batch=False")
    read = _batches if is_batch else joined(spec)
    changes = {"source": _reading(wanted.dataset, read), "batch": True, "cycle": "raise", "no_copy": True}
    return changes if wanted.layout is None else {**changes, "layout": wanted.layout}


def _reading(dataset: tf.data.Dataset, read: Callable[[tf.data.Dataset], Iterator[Any]]) -> Callable[[], Iterator[Any]]:
    def source() -> Iterator[Any]:
        yield from read(dataset)

    return source


def _batches(dataset: tf.data.Dataset) -> Iterator[Any]:
    return map(_bytes, dataset.as_numpy_iterator())


def _joined(spec: tf.TensorSpec, batch_size: int, drop: bool) -> Callable[[tf.data.Dataset], Iterator[Any]]:
    """Returns a function that reads samples and combines them into batches. If their shape is known, TensorFlow
    combines them."""
    if spec.shape.is_fully_defined():
        return lambda dataset: _batches(dataset.batch(batch_size, drop_remainder=drop))

    def read(dataset: tf.data.Dataset) -> Iterator[Any]:
        samples = map(_bytes, dataset.as_numpy_iterator())
        while batch := list(itertools.islice(samples, batch_size)):
            if len(batch) == batch_size or not drop:
                yield batch

    return read


def _bytes(value: Any) -> Any:
    """Converts strings to arrays of bytes."""
    value = value[0] if isinstance(value, tuple) else value
    if isinstance(value, bytes):
        return np.frombuffer(value, "u1")
    if isinstance(value, np.ndarray) and value.dtype == object:
        return [np.frombuffer(v, "u1") for v in value]
    return value
