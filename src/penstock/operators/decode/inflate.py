# SPDX-License-Identifier: Apache-2.0
"""Decompression of samples, or of their chunks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample


class Inflate(Operator):
    """Decompresses samples of known shape and type that were compressed with LZ4.

    The input is bytes, uint8 of one dimension: a raw block, as written by `lz4.block.compress(x, store_size=False)` and
    nvCOMP (https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md), not a frame of lz4.frame. The output is an
    array of `shape` and `dtype` with the decompressed bytes, in the byte order of this machine. If it is larger than
    the data, the rest is filled with zeros.

    With `chunk_offsets` or `chunk_sizes`, a sample consists of several blocks of arrays of the same `shape`. They are
    stacked along a new first axis, which is called `sequence_axis_name` if there is a `layout`. Chunks may be a
    selection, in any order, and their number may differ from sample to sample. Without `chunk_sizes`, a chunk ends
    where the next one begins, and the last one at the end of the sample. Without `chunk_offsets`, chunks are contiguous
    from the beginning of the sample.

    Damaged or truncated data, data larger than the output, an empty sample and chunks that exceed the sample are errors
    of the sample, which the pipeline's `on_error` handles, on both devices. DALI has this operator on the GPU only;
    there, the output of a damaged block is undefined, and so is that of a block larger than the output unless
    `check_output_size` is set. DALI's operator does not support FLOAT64.

    >>> from penstock import fn, pipeline_def
    >>> import numpy as np
    >>> blocks = np.uint8([0x12, 7, 1, 0, 0, 0x70, 1, 2, 3, 4, 5, 6, 7])  # 7 and 6 more of what was 1 byte ago; 1 to 7
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.decoders.inflate(blocks, shape=[7], chunk_sizes=[5, 8], layout="X")
    >>> pipe().run()[0].at(0).tolist()
    [[7, 7, 7, 7, 7, 7, 7], [1, 2, 3, 4, 5, 6, 7]]
    """

    traced = False
    module = "decoders"
    deprecated = ("experimental.Inflate",)
    by_frame = False
    kernel = "decode/lz4_chunks"
    gpu_stage = "penstock.operators.decode.gpu.with_status:KernelWithStatus"

    shape = PerSample([int], doc="Shape of the output, or of each chunk; [] is a scalar.")
    algorithm = Arg(str, "LZ4", "Compression of the input. Only 'LZ4' is supported.")
    check_output_size = Arg(
        bool, False, "Has no effect: whether the data fits into the output is always checked, at no cost."
    )
    chunk_offsets = PerSample([int], None, "Offsets of the chunks in the sample, in bytes.", ragged=True)
    chunk_sizes = PerSample([int], None, "Compressed sizes of the chunks, in bytes.", ragged=True)
    dtype = Arg(DALIDataType, DALIDataType.UINT8, "Type of the output: any numeric type, or BOOL.")
    layout = Arg(Layout, "", "Layout of the output, or of each chunk, with as many axes as `shape`.")
    sequence_axis_name = Arg(Layout, "F", "Name of the chunk axis, one character.")

    def setup(self) -> None:
        values, name = self.values, self.display_name()
        if str(values["algorithm"]).lower() != "lz4":
            raise ValueError(f"{name}: algorithm takes 'LZ4'; got {values['algorithm']!r}")
        axis = values["sequence_axis_name"]
        if len(axis) != 1:
            raise ValueError(f"{name}: sequence_axis_name takes one character; got '{axis}'")
        if values["dtype"] > DALIDataType.BOOL:
            raise ValueError(f"{name}: dtype takes a type of numbers such as types.UINT8; got {values['dtype']}")
        if isinstance(values["shape"], list):
            self._check_layout(len(values["shape"]))

    def _check_layout(self, ndim: int) -> None:
        layout = self.values["layout"]
        if layout and len(layout) != ndim:
            raise ValueError(
                f"layout='{layout}' has {len(layout)} names, `shape` {ndim} extents; the axis that counts chunks is "
                "called `sequence_axis_name` and is not part of them"
            )

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype != np.uint8 or x.ndim != 1:
            raise ValueError(
                f"compressed data is bytes, uint8 of one dimension; got {x.dtype.name} of {x.ndim} dimensions; "
                "fn.reinterpret and fn.reshape make bytes of it"
            )
        self._check_layout(a.shape.shape[1])
        nbytes = x.shape[:, 0]
        SampleErrors.where(nbytes == 0, lambda i: "the sample is empty; a block has one byte at least")
        negative = (a.shape < 0).any(axis=1)
        SampleErrors.where(negative, lambda i: f"extents can't be negative; shape is {a.shape[i].tolist()}")
        a.is_chunked = a.chunk_offsets is not None or a.chunk_sizes is not None
        a.offsets, a.sizes = np.zeros((a.n, 1), "i8"), nbytes[:, None].astype("i8")
        a.counts = np.ones(a.n, "i8")
        if a.is_chunked:
            a.offsets, a.sizes, a.counts = _chunks(a, nbytes)

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        shape, layout = a.shape.astype("i8"), str(a.layout)
        if a.is_chunked:
            shape = np.concatenate([a.counts[:, None], shape], axis=1)
            layout = layout and a.sequence_axis_name + layout
        return Spec(shape, to_numpy(a.dtype), layout)

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {"offsets": a.offsets, "sizes": a.sizes, "chunks": a.counts}


def _chunks(a: Arguments, nbytes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Offsets and sizes (n, k) of chunks, and their number (n,). Raises SampleErrors for chunks outside the sample."""
    offsets = None if a.chunk_offsets is None else a.chunk_offsets.astype("i8")
    sizes = None if a.chunk_sizes is None else a.chunk_sizes.astype("i8")
    counts = a.lengths("chunk_offsets" if offsets is not None else "chunk_sizes")
    if offsets is not None and sizes is not None:
        others = a.lengths("chunk_sizes")
        SampleErrors.where(
            counts != others,
            lambda i: f"chunk_offsets has {counts[i]} values and chunk_sizes {others[i]}; both need one for each chunk",
        )
        k = min(offsets.shape[1], sizes.shape[1])
        offsets, sizes = offsets[:, :k], sizes[:, :k]
    given = offsets if offsets is not None else sizes
    assert given is not None
    k = given.shape[1]
    is_there, end = np.arange(k) < counts[:, None], nbytes[:, None]

    def check(wrong: np.ndarray, text: Callable[[int, int], str]) -> None:
        wrong = wrong & is_there
        SampleErrors.where(
            wrong.any(axis=1), lambda i: f"{text(i, int(wrong[i].argmax()))}; the sample has {nbytes[i]} bytes"
        )

    if offsets is not None:
        begins = offsets
        check(begins < 0, lambda i, j: f"chunk_offsets[{j}] must be non-negative; got {begins[i, j]}")
        check(begins >= end, lambda i, j: f"chunk_offsets[{j}] cannot point past the last byte; got {begins[i, j]}")
    if sizes is not None:
        counted = sizes
        check(counted < 1, lambda i, j: f"chunk_sizes[{j}]: chunk size must be positive; got {counted[i, j]}")
        check(counted > end, lambda i, j: f"chunk_sizes[{j}] cannot exceed the sample size; got {counted[i, j]}")
    if offsets is None:
        assert sizes is not None
        offsets = np.cumsum(sizes, axis=1) - sizes
    elif sizes is None:
        last = np.arange(k) == counts[:, None] - 1
        following = np.concatenate([offsets[:, 1:], end[:, :k]], axis=1) if k else offsets
        sizes = np.where(last, end, following) - offsets
        check(
            sizes < 1,
            lambda i, j: (
                f"chunk_offsets[{j}] is {offsets[i, j]} and the next one {offsets[i, j + 1]}: the size of a chunk "
                "would be non-positive; without chunk_sizes they have to increase"
            ),
        )
    ends = "cannot exceed the sample size" if a.chunk_offsets is not None else "exceeds the total size of the sample"
    check(
        offsets + sizes > end,
        lambda i, j: f"chunk {j}, {sizes[i, j]} bytes from {offsets[i, j]} on, {ends}",
    )
    return offsets, sizes, counts
