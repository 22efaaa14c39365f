# SPDX-License-Identifier: Apache-2.0
"""`DALIRaggedIterator` for JAX: batches whose samples differ in shape, padded, with their lengths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax

from ...core.constructors import names_checked
from ...pipeline import Pipeline
from ...tensors import padded
from ..base_iterator import Batch, LastBatchPolicy
from ..iterator_texts import with_parameters
from ..ragged_batches import check_padding, names_with_lengths, tags_of
from .iterator import DALIGenericIterator


@with_parameters
class DALIRaggedIterator(DALIGenericIterator):
    """Like `DALIGenericIterator`, for batches whose samples differ in shape.

    Parameters
    ----------
    pipelines
        As in `DALIGenericIterator`.
    {output_map size reader_name}
    output_types
        A tag for each output, by default `DENSE_TAG`:

        * `DENSE_TAG` ("dense"): one array; the samples must have the same shape;
        * `PADDED_TAG` ("padded"): one array (batch, largest extents...), filled with `padding_value`, and, under the
          name of the output followed by "_lengths", an int32 array (batch,): the extent of each sample along the axis
          "t" (time) or "F" (frames) of its layout, otherwise along its first axis. Outputs on the GPU are padded in
          host memory; `fn.pad` in the pipeline pads them on the GPU.
    {auto_reset last_batch_padded}
    last_batch_policy, sharding, pmap_compatible, devices
        As in `DALIGenericIterator`. Padded outputs have one shape in all pipelines of this process; with several
        processes, pad to a fixed `shape` in the pipeline.
    {prepare_first_batch padding_value}
    pad_to_multiple_of
        The padded length is a multiple of this. JAX compiles once for each shape, so fewer shapes save time.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     return fn.external_source(source=[[np.float32([1, 2, 3]), np.float32([4])]])
    >>> batch = next(DALIRaggedIterator(pipe(), ["x"], output_types=["padded"], pad_to_multiple_of=4))
    >>> batch["x"].tolist(), batch["x_lengths"].tolist()
    ([[1.0, 2.0, 3.0, 0.0], [4.0, 0.0, 0.0, 0.0]], [3, 1])
    """

    DENSE_TAG = "dense"
    PADDED_TAG = "padded"

    @names_checked
    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: str | bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy | str = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: jax.sharding.Sharding | None = None,
        pmap_compatible: bool | None = None,
        *,
        devices: Sequence[jax.Device] | None = None,
        padding_value: float = 0,
        pad_to_multiple_of: int = 1,
    ):
        check_padding(pad_to_multiple_of)
        self._padding_value, self._multiple = padding_value, pad_to_multiple_of
        tags = tags_of(output_types, output_map, (self.DENSE_TAG, self.PADDED_TAG))
        self._is_padded = [t == self.PADDED_TAG for t in tags]
        names_with_lengths(output_map, self._is_padded)
        super().__init__(
            pipelines,
            output_map,
            size,
            reader_name,
            auto_reset,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            sharding,
            pmap_compatible,
            devices=devices,
        )

    def _convert(self, batches: list[Batch]) -> dict[str, jax.Array]:
        made = super()._convert(batches)
        for i, name in enumerate(self._names):
            if self._is_padded[i]:
                lengths = [padded.lengths(b.outputs[i]).astype("i4") for b in batches]
                made[f"{name}_lengths"] = self._placed(lengths, f"{name}_lengths", batches)
        return made

    def _tensors(self, output: int, batches: list[Batch]) -> list[Any]:
        if not self._is_padded[output]:
            return super()._tensors(output, batches)
        outputs = [b.outputs[output] for b in batches]
        extents = padded.padded_extents(outputs, [None] * len(outputs), self._multiple)
        return [padded.padded(o.as_cpu(), extents, self._padding_value) for o in outputs]
