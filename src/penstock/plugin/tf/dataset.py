# SPDX-License-Identifier: Apache-2.0
"""`DALIDataset`: a pipeline as a `tf.data.Dataset`."""

from __future__ import annotations

import warnings
import weakref
from typing import Any

import tensorflow as tf

from ...core.constructors import names_checked, warn_deprecated
from ...pipeline import Pipeline
from ..base_iterator import LastBatchPolicy
from .copies import Copier, Epochs, Iterators
from .elements import Elements


class DALIDataset(tf.data.Dataset):
    """A `tf.data.Dataset` of a pipeline's batches, for Keras, `tf.function` and distribution strategies.

    Nothing is compiled against TensorFlow: any release from 2.12 on works. Tensors share the memory of the batch that
    the pipeline made in host memory: nothing is copied.

    Each iterator runs a copy of the pipeline. As in DALI, the dataset of a reader is infinite (limit it with Keras's
    `steps_per_epoch`), that of an `external_source` ends with its source, and each iterator starts again. With
    `reader_name` or `size`, it has epochs: each iterator is one epoch, the next iterator is the next epoch, with a new
    order if the reader shuffles, and `len` returns the number of batches.

    Parameters
    ----------
    pipeline
        A pipeline. It is not changed.
    output_dtypes
        Types of the outputs: a tf.DType for a single one, otherwise a tuple, or a nested structure, which elements then
        have too. By default those of the first batch.
    output_shapes
        Shapes of the outputs, the batch first, as in ((None, 224, 224, 3), (None,)); None for unknown extents. By
        default all are unknown. Extents of 1 that are not in the shape are removed from the batch.
    fail_on_device_mismatch
        Whether to raise an error if an output is on a GPU and the dataset is not. Elements pass through host memory in
        any case, which requires a copy for outputs on a GPU.
    batch_size, num_threads, device_id, prefetch_queue_depth
        As in `Pipeline`, instead of the values of the pipeline.
    exec_separated, exec_dynamic, cpu_prefetch_queue_depth, gpu_prefetch_queue_depth
        Of DALI's executors. With `exec_separated`, `cpu_prefetch_queue_depth` is the depth.
    dtypes, shapes
        Old names of `output_dtypes` and `output_shapes`.
    reader_name, size, last_batch_padded, last_batch_policy
        Epochs, as in the iterators for other frameworks; see `penstock.plugin.pytorch.DALIGenericIterator`.

    The first batch is made in the constructor, which reports mistakes early.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> dataset = DALIDataset(pipe(), output_dtypes=tf.float32, output_shapes=(None, 1))
    >>> dataset.element_spec
    TensorSpec(shape=(None, 1), dtype=tf.float32, name=None)
    >>> [x.numpy().tolist() for x in dataset]
    [[[0.0], [1.0]], [[2.0], [3.0]]]
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
    ):
        if not isinstance(pipeline, Pipeline):
            raise TypeError(f"{type(self).__name__} takes a Pipeline; got {type(pipeline).__name__}")
        depth = cpu_prefetch_queue_depth if exec_separated else prefetch_queue_depth
        arguments = pipeline_arguments(exec_separated, exec_dynamic, batch_size, num_threads, device_id, depth)
        size_of_batch = own_batch_size(pipeline, arguments)
        output_dtypes = _renamed(output_dtypes, dtypes, "dtypes")
        elements = Elements(output_dtypes, _renamed(output_shapes, shapes, "shapes"), pipeline.num_outputs)
        elements.check_batches(size_of_batch, ragged_end=False)
        copier = Copier(pipeline, arguments, self._replaced_sources(pipeline, size_of_batch, elements))
        _check_devices(pipeline, fail_on_device_mismatch)

        def make() -> Epochs:
            return Epochs(
                copier(),
                elements,
                size=size,
                reader_name=reader_name,
                last_batch_padded=last_batch_padded,
                last_batch_policy=last_batch_policy,
            )

        iterators = Iterators(make, goes_on=reader_name is not None or size != -1)
        first = iterators.prepare()
        weakref.finalize(self, iterators.close).atexit = False
        elements.check_batches(size_of_batch, first.end_is_ragged)
        with tf.device("/cpu:0"):
            generated = tf.data.Dataset.from_generator(iterators, output_signature=elements.spec)
            self._inner = generated.with_options(dataset_options())
            super().__init__(tf.data.experimental.to_variant(self._inner))  # type: ignore[call-arg]  # not in the stubs
        self._length = first.constant_length

    def _replaced_sources(self, pipeline: Pipeline, batch_size: int, elements: Elements) -> dict[str, dict[str, Any]]:
        """By name of an external source, arguments that replace its own."""
        fed = [n.name for n in placeholders(pipeline)]
        if fed:
            raise ValueError(
                f"the pipeline has external sources without a source, {', '.join(map(repr, fed))}: give them a source, "
                "or feed them from datasets by experimental.DALIDatasetWithInputs(pipeline, input_datasets={name: ...})"
            )
        return {}

    def _inputs(self) -> list[tf.data.Dataset]:
        return [self._inner]

    @property
    def element_spec(self) -> Any:
        return self._inner.element_spec

    def cardinality(self) -> tf.Tensor:  # type: ignore[override]  # the stubs say int; TensorFlow gives a tensor
        """The number of batches, if it is the same in every epoch; otherwise `tf.data.UNKNOWN_CARDINALITY`.

        Datasets derived from this one don't know it. `tf.data.experimental.assert_cardinality` could set it, but then
        `ignore_errors` never ends once a batch has failed.
        """
        return tf.constant(tf.data.UNKNOWN_CARDINALITY if self._length is None else self._length, tf.int64)


def placeholders(pipeline: Pipeline) -> list[Any]:
    """The external sources of a pipeline that have no source."""
    pipeline.build()
    return [n for n in pipeline.definition.nodes if n.op.fn_name == "external_source" and n.op.values["source"] is None]


def pipeline_arguments(
    exec_separated: bool,
    exec_dynamic: bool | None,
    batch_size: int | None,
    num_threads: int | None,
    device_id: int | None,
    depth: Any,
) -> dict[str, Any]:
    """The given arguments for the copies of a pipeline."""
    if exec_separated and exec_dynamic:
        raise ValueError("exec_separated and exec_dynamic exclude each other")
    given = {"batch_size": batch_size, "num_threads": num_threads, "device_id": device_id}
    given["prefetch_queue_depth"] = depth
    return {k: v for k, v in given.items() if v is not None}


def own_batch_size(pipeline: Pipeline, arguments: dict[str, Any]) -> int:
    """The batch size of the copies. Also set for the pipeline if it has none."""
    if pipeline.max_batch_size is None:
        size = arguments.get("batch_size", 1)
        pipeline._settings.max_batch_size = pipeline._runner.batch_size = size
    return int(arguments.get("batch_size") or pipeline.max_batch_size or 1)


def _renamed(value: Any, old: Any, name: str) -> Any:
    if old is None:
        return value
    if value is not None:
        raise ValueError(f"{name} is the old name of output_{name}: give output_{name} only")
    warn_deprecated(f"{name} is deprecated; use output_{name}")
    return old


def _check_devices(pipeline: Pipeline, fail: bool) -> None:
    """Raises an error for GPU outputs in a dataset on the CPU if `fail`; otherwise warns about GPU outputs."""
    assert pipeline._plan is not None
    nodes = pipeline.definition.nodes
    on_gpu = [i for i, (node, k) in enumerate(pipeline._plan.outputs) if nodes[node].outputs[k].device == "gpu"]
    if not on_gpu:
        return
    which = f"output{'s' * (len(on_gpu) > 1)} {', '.join(map(str, on_gpu))} of the pipeline on the GPU"
    costs = "elements of the dataset come through host memory, which takes a copy of each batch"
    if fail and "GPU" not in _scope().upper():
        raise ValueError(
            f"{which}, and the dataset is on the CPU: {costs}. End the pipeline with .cpu(), or say "
            "fail_on_device_mismatch=False, or make the dataset in `with tf.device('/gpu:0')`"
        )
    warnings.warn(f"{which}: {costs}", stacklevel=4)


def _scope() -> str:
    """The device of the enclosing `tf.device`, or ""."""
    if not tf.executing_eagerly():
        return str(tf.no_op().device)
    from tensorflow.python.eager import context  # there is no public way to ask

    return context.context().device_name or ""


def dataset_options() -> tf.data.Options:
    """The options of `tf.data` that a `DALIDataset` has, as DALI's: no optimisations and no tuning, which would keep
    more batches in memory ahead of the training than the pipeline does."""
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options
