# SPDX-License-Identifier: Apache-2.0
"""Random crop windows around a region of interest."""

from __future__ import annotations

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample, Seeded
from ...core.rows import reserve

_INT64 = np.dtype("i8")


class ROIRandomCrop(Seeded):
    """Selects a random position of a crop window so that it covers a region of interest, or lies inside a larger one.

    Along each axis, all such positions are equally likely. If the sample's shape is known, from an input (of which only
    the shape is used) or from `in_shape`, the window also lies inside the sample. The output is the beginning of the
    window, int64, one value per axis.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     return fn.roi_random_crop(crop_shape=[4, 2], roi_start=[3, 5], roi_end=[7, 7], in_shape=[10, 10])
    >>> pipe().run()[0].at(0).tolist()
    [3, 5]
    """

    inputs = (0, 1)
    devices = ("cpu",)
    by_frame = False
    is_prompt = True
    crop_shape = PerSample([int], doc="Shape of the window, in elements.")
    roi_start = PerSample([int], doc="Beginning of the region of interest, in elements.")
    roi_end = PerSample([int], None, "End of the region of interest, exclusive.")
    roi_shape = PerSample([int], None, "Shape of the region of interest, instead of `roi_end`.")
    in_shape = PerSample([int], None, "Shape of the sample that is to be cropped, instead of an input.")

    def setup(self) -> None:
        given = self.given
        if len(given & {"roi_end", "roi_shape"}) != 1:
            raise ValueError("give the region of interest by `roi_start` and either `roi_end` or `roi_shape`")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        columns = a.crop_shape, a.roi_start, a.roi_end, a.roi_shape, a.in_shape
        made = None if inputs else a.memo.get("made")
        if made is None:
            made = self._checked(columns, inputs[0].spec.shape if inputs else None)
            if not inputs:
                a.memo["made"] = made
        k, native = made
        out, at = reserve((a.n, k), _INT64)
        if kernels.library().windows_about(*a.random.columns(), a.n, k, *native, at):
            crop, start, end, extent, size = columns
            shape = inputs[0].spec.shape if inputs else size
            _explain(crop, start, start.astype("i8") + extent if end is None else end, shape)
        return Batch.from_array(out)

    def _checked(self, columns: tuple, of_input: np.ndarray | None) -> tuple[int, tuple]:
        """The number of cropped axes, and the columns in the kernel's form."""
        crop, start, end, extent, size = columns
        k = crop.shape[1]
        for name, values in (("roi_start", start), ("roi_end", end), ("roi_shape", extent)):
            if values is not None and values.shape[1] != k:
                raise ValueError(f"`{name}` has {values.shape[1]} values, `crop_shape` has {k}")
        if of_input is not None and size is not None:
            raise ValueError("the sample's shape is given twice: by an input and by `in_shape`")
        shape = size if of_input is None else of_input
        if shape is not None and shape.shape[1] < k:
            raise ValueError(f"the sample has {shape.shape[1]} axes, `crop_shape` has {k} values")
        data = [None if x is None else x.tobytes() for x in (crop, start, end, extent)]
        of_sample = (None, 0) if shape is None else (shape.tobytes(), shape.shape[1])
        return k, (*data, of_input is not None, *of_sample)


def _explain(crop: np.ndarray, start: np.ndarray, end: np.ndarray, shape: np.ndarray | None) -> None:
    _check(crop < 0, "`crop_shape` can't be negative; got {}", crop)
    _check(end < start, "the region of interest ends before it begins: from {} to {}", start, end)
    assert shape is not None
    size = shape[:, : crop.shape[1]]
    _check(crop > size, "the window {} is larger than the sample {}", crop, size)
    outside = (start < 0) | (end > size)
    _check(outside, "the region of interest from {} to {} reaches out of the sample {}", start, end, size)


def _check(wrong: np.ndarray, text: str, *values: np.ndarray) -> None:
    SampleErrors.where(np.any(wrong, axis=1), lambda i: text.format(*(v[i].tolist() for v in values)))
