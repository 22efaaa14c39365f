# SPDX-License-Identifier: Apache-2.0
"""`DALIRaggedIterator`: batches whose samples differ in shape, as lists, padded, nested or sparse tensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch

from ...core.constructors import names_checked
from ...pipeline import Pipeline
from ...tensors import TensorListCPU, padded
from ...types import to_numpy_type
from ..base_iterator import Batch, DaliIterator, LastBatchPolicy
from ..dense_batches import writable
from ..iterator_texts import with_parameters
from ..ragged_batches import check_padding, names_with_lengths, tags_of
from ..sparse import coordinates
from .torch_utils import dense_tensor, on_gpu, to_torch_type


@with_parameters
class DALIRaggedIterator(DaliIterator[list[dict[str, Any]]]):
    """Like `DALIGenericIterator`, for batches whose samples differ in shape.

    Parameters
    ----------
    {pipelines output_map size reader_name}
    output_types
        A tag for each output, by default `DENSE_TAG`:

        * `DENSE_TAG` ("dense"): one tensor; the samples must have the same shape;
        * `PADDED_TAG` ("padded"): one tensor (batch, largest extents...), filled with `padding_value`, and, under the
          name of the output followed by "_lengths", an int64 tensor (batch,) on the CPU: the extent of each sample
          along the axis "t" (time) or "F" (frames) of its layout, otherwise along its first axis;
        * `NESTED_TAG` ("nested"): a nested tensor of the layout `torch.jagged`; the samples may differ only in the
          extent of that same axis;
        * `SPARSE_LIST_TAG` ("sparse_list"): a list with a tensor per sample;
        * `SPARSE_COO_TAG` ("sparse_coo"): a sparse COO tensor (batch, largest extents...) that holds all elements of
          all samples.
    {auto_reset fill_last_batch dynamic_shape last_batch_padded last_batch_policy prepare_first_batch}
    {padding_value pad_to_multiple_of}

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[[np.float32([1, 2, 3]), np.float32([4])]])
    >>> (batch,) = next(DALIRaggedIterator(pipe(), ["x"], output_types=["padded"]))
    >>> batch["x"].tolist(), batch["x_lengths"].tolist()
    ([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]], [3, 1])
    """

    DENSE_TAG = "dense"
    SPARSE_LIST_TAG = "sparse_list"
    SPARSE_COO_TAG = "sparse_coo"
    PADDED_TAG = "padded"
    NESTED_TAG = "nested"

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
        *,
        padding_value: float = 0,
        pad_to_multiple_of: int = 1,
    ):
        check_padding(pad_to_multiple_of)
        tags: dict[str, Callable[..., Any]] = {
            self.DENSE_TAG: dense_tensor,
            self.SPARSE_LIST_TAG: _list_of_tensors,
            self.SPARSE_COO_TAG: _coo_tensor,
            self.PADDED_TAG: partial(_padded_tensor, value=padding_value, multiple=pad_to_multiple_of),
            self.NESTED_TAG: _nested_tensor,
        }
        self._tags = tags_of(output_types, output_map, tags)
        self._convert_output = [tags[t] for t in self._tags]
        names_with_lengths(output_map, [t == self.PADDED_TAG for t in self._tags])
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
        return [self._tensors(b) for b in batches]

    def _tensors(self, batch: Batch) -> dict[str, Any]:
        made = {}
        for name, tag, output, convert in zip(self._names, self._tags, batch.outputs, self._convert_output):
            made[name] = convert(output, name, batch.keep)
            if tag == self.PADDED_TAG:
                made[f"{name}_lengths"] = torch.from_numpy(padded.lengths(output, batch.keep))
        return made


def _list_of_tensors(output: Any, name: str, keep: int) -> list[torch.Tensor]:
    if isinstance(output, TensorListCPU):
        output = writable(output)
        return [torch.from_numpy(output.at(i)) for i in range(keep)]
    return [on_gpu(output[i], name) for i in range(keep)]


def _padded_tensor(output: Any, name: str, keep: int, value: float, multiple: int) -> torch.Tensor:
    extents = padded.padded_extents([output], [keep], multiple)
    if isinstance(output, TensorListCPU):
        return torch.from_numpy(padded.padded(output, extents, value, keep))
    dtype, device = to_torch_type[output.dtype], f"cuda:{output.device_id()}"
    made = torch.full((keep, *extents), value, dtype=dtype, device=device)
    for i, sample in enumerate(_list_of_tensors(output, name, keep)):
        place: tuple[Any, ...] = (i, *map(slice, sample.shape))
        made[place] = sample
    return made


def _nested_tensor(output: Any, name: str, keep: int) -> torch.Tensor:
    shape, axis = padded.shapes(output, keep), padded.length_axis(output)
    others = np.delete(shape, axis, axis=1) if shape.shape[1] else shape
    if not shape.shape[1] or (others != others[:1]).any():
        raise ValueError(
            f"output '{name}': a nested tensor takes samples that differ only in their extent along axis {axis}; got "
            f"the shapes {', '.join(str(tuple(map(int, s))) for s in shape[:4])}. Pad the other axes in the pipeline, "
            "or use the tag 'padded' or 'sparse_list'"
        )
    samples = _list_of_tensors(output, name, keep)
    values = (
        torch.cat(samples, axis) if samples else torch.empty([0] * shape.shape[1], dtype=to_torch_type[output.dtype])
    )
    offsets = torch.from_numpy(np.concatenate([[0], np.cumsum(shape[:, axis])])).to(values.device)
    nested: torch.Tensor = torch.nested.nested_tensor_from_jagged(values, offsets, jagged_dim=axis + 1)
    return nested


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
