# SPDX-License-Identifier: Apache-2.0
"""Iterators that give PyTorch tensors. Tensors of CPU pipelines share the memory of the batch: nothing is copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ...core.constructors import names_checked, no_attribute
from ...pipeline import Pipeline
from ...tensors import TensorListCPU
from ...types import to_numpy_type
from ..base_iterator import Batch, DaliIterator, LastBatchPolicy
from ..classification import Classification
from ..dense_batches import writable
from ..iterator_texts import with_parameters
from ..sparse import coordinates
from . import fn
from ._torch_function import TorchPythonFunction
from .torch_utils import dense_tensor, feed_ndarray, on_gpu, tensors, to_torch_type

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
    """Iterates over pipelines and gives a list with one dictionary {name: tensor} for each pipeline.

    Tensors have the batch axis first, are on the CPU or the GPU, as the outputs are, and share the memory of the batch,
    which stays theirs for as long as they live.

    Parameters
    ----------
    {pipelines output_map size reader_name auto_reset}
    {fill_last_batch dynamic_shape last_batch_padded last_batch_policy prepare_first_batch}

    `reset()` works in the middle of an epoch: the rest is dropped and the readers begin their next epoch.

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
    """`DALIGenericIterator` for pipelines with two outputs, which it calls "data" and "label"."""


class DALIRaggedIterator(DaliIterator[list[dict[str, Any]]]):
    """Like `DALIGenericIterator`, for batches whose samples differ in shape.

    `output_types` has a tag for each output: `DENSE_TAG` for one tensor, `SPARSE_LIST_TAG` for a list with a tensor
    per sample,
    `SPARSE_COO_TAG` for a sparse COO tensor (batch, largest extents...) that holds all elements of all samples.
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: str | bool | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ):
        tags: dict[str, Callable[..., Any]] = {
            self.DENSE_TAG: dense_tensor,
            self.SPARSE_LIST_TAG: _list_of_tensors,
            self.SPARSE_COO_TAG: _coo_tensor,
        }
        types = [self.DENSE_TAG] * len(output_map) if output_types is None else list(output_types)
        if len(types) != len(output_map):
            raise ValueError(f"output_types has {len(types)} tags, but output_map has {len(output_map)} names")
        for t in types:
            if t not in tags:
                raise ValueError(f"output_types takes {', '.join(map(repr, tags))}; got {t!r}")
        self._convert_output: list[Callable[..., Any]] = [tags[t] for t in types]
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )

    def _convert(self, batches: list[Batch]) -> list[dict[str, Any]]:
        return [{n: f(o, n, b.keep) for n, o, f in zip(self._names, b.outputs, self._convert_output)} for b in batches]


def _list_of_tensors(output: Any, name: str, keep: int) -> list[torch.Tensor]:
    if isinstance(output, TensorListCPU):
        output = writable(output)
        return [torch.from_numpy(output.at(i)) for i in range(keep)]
    return [on_gpu(output[i], name) for i in range(keep)]


def _coo_tensor(output: Any, name: str, keep: int) -> torch.Tensor:
    if not isinstance(output, TensorListCPU):
        return _coo_on_gpu(_list_of_tensors(output, name, keep), output)
    samples = [output.at(i) for i in range(keep)]
    index, values, shape = coordinates(samples, output.ndim(), to_numpy_type(output.dtype))
    return torch.sparse_coo_tensor(torch.from_numpy(index), torch.from_numpy(values), shape, check_invariants=False)


def _coo_on_gpu(samples: list[torch.Tensor], output: Any) -> torch.Tensor:
    device, ndim = f"cuda:{output.device_id()}", output.ndim()
    extents = np.array([s.shape for s in samples], "i8").reshape(len(samples), ndim).max(axis=0, initial=0)
    index = [
        torch.cat([torch.full((1, s.numel()), i, device=device), torch.ones_like(s, dtype=torch.bool).nonzero().T])
        for i, s in enumerate(samples)
    ]
    return torch.sparse_coo_tensor(
        torch.cat(index, 1) if index else torch.empty((1 + ndim, 0), dtype=torch.int64, device=device),
        torch.cat([s.reshape(-1) for s in samples]) if samples else torch.empty(0, dtype=to_torch_type[output.dtype]),
        (len(samples), *map(int, extents)),
        device=device,
        check_invariants=False,
    )


if not TYPE_CHECKING:

    def __getattr__(name):
        raise no_attribute(__name__, name)
