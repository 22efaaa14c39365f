# SPDX-License-Identifier: Apache-2.0
"""Iterators that return PyTorch tensors. Tensors of CPU pipelines share the memory of the batch: nothing is copied."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from ...core.constructors import no_attribute
from ..base_iterator import Batch, DaliIterator, LastBatchPolicy
from ..classification import Classification
from ..iterator_texts import with_parameters
from . import fn
from ._torch_function import TorchPythonFunction
from .ragged import DALIRaggedIterator
from .torch_utils import dense_tensor, feed_ndarray, tensors, to_torch_type

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "TorchPythonFunction",
    "feed_ndarray",
    "fn",
    "to_torch_type",
]


@with_parameters
class DALIGenericIterator(DaliIterator[list[dict[str, torch.Tensor]]]):
    """Iterates over pipelines and returns a list with one dictionary {name: tensor} for each pipeline.

    The first axis of tensors is the batch. They are on the device of the outputs, CPU or GPU, and share the memory of
    the batch, which is kept as long as they exist.

    Parameters
    ----------
    {pipelines output_map size reader_name auto_reset}
    {fill_last_batch dynamic_shape last_batch_padded last_batch_policy prepare_first_batch}

    `reset()` works in the middle of an epoch: the rest is dropped, and the readers begin their next epoch.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[np.float32([[0], [1]]), np.float32([[2], [3]])])
    >>> for batch in DALIGenericIterator(pipe(), ["x"]):
    ...     print(batch[0]["x"].flatten())
    tensor([0., 1.])
    tensor([2., 3.])
    """

    def _convert(self, batches: list[Batch]) -> list[dict[str, Any]]:
        return [{n: dense_tensor(o, n, b.keep) for n, o in zip(self._names, b.outputs)} for b in batches]

    _takes_one = True

    def _convert_one(self, outputs: Sequence[Any], keep: int | None) -> list[dict[str, Any]]:
        return [tensors(self._names, outputs, keep)]


class DALIClassificationIterator(Classification, DALIGenericIterator):
    """`DALIGenericIterator` for pipelines with two outputs, which are named "data" and "label"."""


if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "experimental":  # imported on first use
            return importlib.import_module(f"{__name__}.experimental")
        raise no_attribute(__name__, name)
