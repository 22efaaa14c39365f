# SPDX-License-Identifier: Apache-2.0
"""Random crop windows about a region of interest."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample, Seeded


class ROIRandomCrop(Seeded):
    """Draws the place of a crop window so that it covers a region of interest, or lies in it if it is smaller.

    Along each axis all places that do are equally likely. If the sample's shape is known, by an input (only its shape
    is looked at) or by `in_shape`, the window also stays inside the sample. The output is where the window begins,
    int64, one value for each axis.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     return fn.roi_random_crop(crop_shape=[4, 2], roi_start=[3, 5], roi_end=[7, 7], in_shape=[10, 10])
    >>> pipe().run()[0].at(0).tolist()
    [3, 5]
    """

    inputs = (0, 1)
    devices = ("cpu",)
    frames = False
    crop_shape = PerSample([int], doc="Shape of the window.")
    roi_start = PerSample([int], doc="Where the region of interest begins.")
    roi_end = PerSample([int], None, "Where the region of interest ends; not part of it.")
    roi_shape = PerSample([int], None, "Shape of the region of interest; instead of `roi_end`.")
    in_shape = PerSample([int], None, "Shape of the sample that is to be cropped; instead of an input.")

    def setup(self) -> None:
        given = self.values["given"]
        if len(given & {"roi_end", "roi_shape"}) != 1:
            raise ValueError("give the region of interest by `roi_start` and either `roi_end` or `roi_shape`")

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        crop, start = a.crop_shape.astype("i8"), a.roi_start.astype("i8")
        n_axes = crop.shape[1]
        end = start + a.roi_shape if a.roi_end is None else a.roi_end.astype("i8")
        size = self._sample_shape(a, inputs, n_axes)
        for name, values in (("roi_start", start), ("roi_end" if a.roi_shape is None else "roi_shape", end)):
            if values.shape[1] != n_axes:
                raise ValueError(f"`{name}` has {values.shape[1]} values, `crop_shape` has {n_axes}")
        _check((crop < 0).any(axis=1), "`crop_shape` can't be negative; got {}", crop)
        _check((end < start).any(axis=1), "the region of interest ends before it begins: from {} to {}", start, end)
        low, high = np.minimum(start, end - crop), np.maximum(start, end - crop)
        if size is not None:
            _check((crop > size).any(axis=1), "the window {} is larger than the sample {}", crop, size)
            outside = ((start < 0) | (end > size)).any(axis=1)
            _check(outside, "the region of interest from {} to {} reaches out of the sample {}", start, end, size)
            low, high = np.maximum(low, 0), np.minimum(high, size - crop)
        places = high - low + 1
        drawn = np.floor(a.random.uniform(n_axes) * places).astype("i8")
        return Batch.from_array(low + np.minimum(drawn, places - 1))

    def _sample_shape(self, a: Arguments, inputs: tuple[Batch, ...], n_axes: int) -> Any:
        if inputs and a.in_shape is not None:
            raise ValueError("the sample's shape is given twice: by an input and by `in_shape`")
        size = inputs[0].spec.shape if inputs else a.in_shape
        if size is None:
            return None
        if size.shape[1] < n_axes:
            raise ValueError(f"the sample has {size.shape[1]} axes, `crop_shape` has {n_axes} values")
        return size[:, :n_axes].astype("i8")


def _check(wrong: np.ndarray, text: str, *values: np.ndarray) -> None:
    SampleErrors.where(wrong, lambda i: text.format(*(v[i].tolist() for v in values)))
