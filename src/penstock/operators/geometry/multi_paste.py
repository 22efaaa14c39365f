# SPDX-License-Identifier: Apache-2.0
"""Pastes regions of several images onto one canvas."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, from_numpy, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerFrame, PerSample
from ...core.source_name import SourceName, given_name

_TYPES = ("uint8", "int16", "int32", "float32")


class MultiPaste(Operator):
    """Pastes regions of several images onto a black canvas, for example for mosaics. Later regions cover earlier ones.

    There are either several inputs, and sample i of the output is made from sample i of each of them; or there is one
    input, and `in_ids` gives the samples that each sample of the output is made from. All other arguments have two
    numbers, y and x (height and width), for each region, so their samples have the shape (regions, 2). Relative values
    are shares of the size of the image or the canvas; positions are rounded down, sizes up.

    Input: images (HWC), or sequences with the same number of frames in each input (with `in_ids`: in all sequences that
    are combined; each frame is processed, where DALI fails), of type uint8, int16, int32 or float32 and with the same
    number of channels. Regions must lie inside their image and inside the canvas. By default the canvas has the size of
    the images.

    >>> from penstock import fn, pipeline_def
    >>> import numpy as np
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = fn.external_source(source=lambda: [np.full((1, 2, 1), i + 1, np.uint8) for i in range(2)], layout="HWC")
    ...     ids = fn.external_source(source=lambda: [np.int32([0, 1]), np.int32([1])])
    ...     at = fn.external_source(source=lambda: [np.int32([[0, 0], [1, 1]]), np.int32([[0, 1]])])
    ...     return fn.multi_paste(x, in_ids=ids, out_anchors=at, output_size=[2, 3])
    >>> out = pipe().run()[0]
    >>> out.at(0)[..., 0].tolist(), out.at(1)[..., 0].tolist()
    ([[1, 1, 0], [0, 2, 2]], [[0, 2, 2], [0, 0, 0]])
    """

    inputs = (1, 64)
    layouts = ("HWC", "FHWC")
    mixes_samples = True
    by_address = True
    kernel = "geometry/multi_paste"
    in_ids = PerSample([int], None, "Indices of the samples from which regions are taken.", ragged=True)
    output_size = PerSample([int], None, "Height and width of the canvas, in pixels.")
    in_anchors = PerFrame(int, None, "Beginning of the regions in their images, in pixels.", ragged=True)
    in_anchors_rel = PerFrame(
        float, None, "Beginning of the regions in their images, as a share of the image's size.", ragged=True
    )
    shapes = PerFrame(int, None, "Sizes of the regions in pixels. By default from the anchor to the end.", ragged=True)
    shapes_rel = PerFrame(float, None, "Sizes of the regions, as a share of the image's size.", ragged=True)
    out_anchors = PerFrame(int, None, "Positions of the regions on the canvas, in pixels. By default 0.", ragged=True)
    out_anchors_rel = PerFrame(float, None, "Positions of the regions, as a share of the canvas's size.", ragged=True)
    dtype = Arg(DALIDataType, None, "Type of the output; values are rounded and clamped. By default the input's type.")

    def source_names(
        self, names: list[Sequence[str] | None], argument: Callable[[str], list[np.ndarray] | None]
    ) -> Sequence[str] | None:
        """The source of each sample lists those of the samples it is made from."""
        known = [part for part in names if part is not None]
        if not known:
            return None
        ids, n = argument("in_ids"), len(known[0])
        if ids is None:
            return [_list([part[i] for part in known]) for i in range(n)]
        # Indices of samples without frames are not validated.
        return [_list([known[0][i] for i in of_sample.ravel().tolist() if 0 <= i < n]) for of_sample in ids]

    def setup(self) -> None:
        given = self.given
        for name in ("in_anchors", "shapes", "out_anchors"):
            if {name, f"{name}_rel"} <= given:
                raise ValueError(f"give either `{name}` or `{name}_rel`, not both")
        dtype = self.values["dtype"]
        if dtype is not None and to_numpy(dtype).name not in _TYPES:
            raise ValueError(f"output type {to_numpy(dtype).name} is not supported; supported: {', '.join(_TYPES)}")

    def plan(self, a: Arguments, *inputs: Spec) -> None:
        first = inputs[0]
        self._check(a, inputs)
        image, batch, a.count = self._sources(a, inputs)
        shape = _taken(a, [x.stored for x in inputs], batch, image)  # (n, regions, 3)
        there = np.arange(image.shape[1]) < a.count[:, None]
        size = shape[:, :, :2]
        channels = shape[:, 0, 2] if shape.shape[1] else first.shape[:, 2]
        channels = np.where(a.count > 0, channels, first.shape[:, 2])
        SampleErrors.where(
            (there & (shape[:, :, 2] != channels[:, None])).any(axis=1),
            lambda i: f"images of different numbers of channels: {shape[i, : a.count[i], 2].tolist()}",
        )
        canvas = self._canvas(a, size, there)
        in_at = self._numbers(a, "in_anchors", a.count, size, np.floor)
        out_at = self._numbers(a, "out_anchors", a.count, canvas[:, None], np.floor)
        region = self._numbers(a, "shapes", a.count, size, np.ceil)
        in_at = np.zeros_like(size) if in_at is None else in_at
        out_at = np.zeros_like(size) if out_at is None else out_at
        region = size - in_at if region is None else region
        for what, at, whole in (("its image", in_at, size), ("the canvas", out_at, canvas[:, None])):
            wrong = there & ((at < 0) | (region < 0) | (at + region > whole)).any(axis=2)
            SampleErrors.where(wrong.any(axis=1), partial(_text, what, wrong, at, whole, region))
        a.shape = np.concatenate([canvas, channels[:, None]], axis=1)
        a.places = np.concatenate([in_at, np.where(there[:, :, None], region, 0), out_at], axis=2)
        a.widths = shape[:, :, 1].copy()
        a.addresses = _taken(a, [b.rows["data"] for b in a.batches if b is not None], batch, image)

    def outputs(self, a: Arguments, *inputs: Spec) -> Spec:
        return inputs[0].like(shape=a.shape, dtype=self._type(inputs[0]))

    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        return {
            "sources": _wide(a.addresses),
            "widths": _wide(a.widths),
            "places": _wide(a.places.reshape(a.n, -1)),
            "regions": a.count,
            "dtype": int(from_numpy(specs[0].dtype)),
        }

    def _type(self, x: Spec) -> np.dtype:
        return x.dtype if self.values["dtype"] is None else to_numpy(self.values["dtype"])

    def _check(self, a: Arguments, inputs: tuple[Spec, ...]) -> None:
        for i, x in enumerate(inputs):
            if x.dtype.name not in _TYPES or x.dtype != inputs[0].dtype:
                raise TypeError(
                    f"input {i} has the type {x.dtype.name}; supported, and the same for all: {', '.join(_TYPES)}"
                )
            if x.ndim != 3:
                raise ValueError(f"input {i} must be images (HWC); got {x.ndim} dimensions")
        if a.in_ids is not None and len(inputs) > 1:
            raise ValueError(f"`in_ids` needs a single input; got {len(inputs)}")

    def _sources(self, a: Arguments, inputs: tuple[Spec, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Indices (n, regions) of rows and of inputs, and numbers (n,) of regions."""
        if a.in_ids is None:
            image = np.repeat(np.arange(a.n)[:, None], len(inputs), axis=1)
            batch = np.repeat(np.arange(len(inputs))[None], a.n, axis=0)
            return image, batch, np.full(a.n, len(inputs))
        # Frames of each sample. Samples after the last one with frames do not matter.
        frames = np.ones(a.n, "i8") if a.sample_of is None else np.bincount(a.sample_of)
        samples, first = len(frames), np.cumsum(frames) - frames
        ids, counts = a.in_ids, a.lengths("in_ids")
        there = np.arange(ids.shape[1]) < counts[:, None]
        wrong = there & ((ids < 0) | (ids >= samples))
        SampleErrors.where(
            wrong.any(axis=1),
            lambda i: f"`in_ids` must be in range [0, {samples - 1}], the batch; got {ids[i][there[i]].tolist()}",
        )
        ids = np.where(there, ids, 0).astype("i8")
        if a.sample_of is None:
            return ids, np.zeros(ids.shape, "i8"), counts
        sample_of = a.sample_of
        wrong = there & (frames[ids] != frames[sample_of][:, None])
        SampleErrors.where(
            wrong.any(axis=1),
            lambda i: (
                f"`in_ids` must name sequences of {frames[sample_of[i]]} frames, as the sample itself has; those of "
                f"{ids[i][there[i]].tolist()} have {frames[ids[i][there[i]]].tolist()}"
            ),
        )
        frame = np.arange(a.n) - first[sample_of]
        return first[ids] + frame[:, None], np.zeros_like(ids), counts

    def _canvas(self, a: Arguments, size: np.ndarray, there: np.ndarray) -> np.ndarray:
        """Height and width (n, 2) of the canvas."""
        if a.output_size is not None:
            if a.output_size.shape[1] != 2:
                raise ValueError(f"`output_size` needs two numbers, height and width; got {a.output_size.shape[1]}")
            canvas = a.output_size.astype("i8")
            SampleErrors.where(
                (canvas < 0).any(axis=1), lambda i: f"`output_size` must be non-negative; got {canvas[i].tolist()}"
            )
            return canvas
        if not size.shape[1]:
            raise ValueError("`output_size` is needed where there are no regions")
        different = there & (size != size[:, :1]).any(axis=2)
        SampleErrors.where(
            different.any(axis=1) | ~there[:, 0],
            lambda i: f"without `output_size` images must have one size; got {size[i][there[i]].tolist()}",
        )
        return size[:, 0]

    def _numbers(self, a: Arguments, name: str, count: np.ndarray, whole: np.ndarray, rounded: Any) -> Any:
        """An argument in pixels, (n, regions, 2); None if it is not given."""
        absolute, relative = getattr(a, name), getattr(a, f"{name}_rel")
        values = absolute if relative is None else relative
        if values is None or not a.n:
            return None
        name = name if relative is None else f"{name}_rel"
        values = values.reshape(a.n, math.prod(values.shape[1:]))
        given = a.lengths(name) if values.shape[1] and getattr(a, name).ndim > 1 else np.full(a.n, values.shape[1])
        SampleErrors.where(
            given != 2 * count,
            lambda i: f"`{name}` needs two numbers for each of {count[i]} regions; got {given[i]} numbers",
        )
        most = int(count.max(initial=0))
        values = values[:, : 2 * most].reshape(a.n, most, 2)
        if relative is None:
            return values.astype("i8")
        wrong = ((values < 0) | (values > 1)).any(axis=(1, 2))
        SampleErrors.where(wrong, lambda i: f"`{name}` must be in [0, 1]; got {values[i].tolist()}")
        return rounded(values * whole.astype("f4")).astype("i8")


def _text(what: str, wrong: np.ndarray, at: np.ndarray, whole: np.ndarray, region: np.ndarray, i: int) -> str:
    r = int(wrong[i].argmax())
    extent = np.broadcast_to(whole, at.shape)[i, r]
    return (
        f"region {r} must be within bounds of {what}: it begins at {at[i, r].tolist()} and has the size "
        f"{region[i, r].tolist()}; the size of {what} is {extent.tolist()}"
    )


def _taken(a: Arguments, of_inputs: list[np.ndarray], batch: np.ndarray, row: np.ndarray) -> np.ndarray:
    """For each region the row of its input, (n, regions, ...)."""
    if len(of_inputs) == 1:
        return a.native.taken(of_inputs[0].astype("i8"), row)
    return np.stack(of_inputs)[batch, row].astype("i8")


def _list(names: list[str]) -> SourceName:
    given = [name for name in map(given_name, names) if name]
    return SourceName(" and ".join(dict.fromkeys(names)), ";".join(given))


def _wide(x: np.ndarray) -> np.ndarray:
    """Pads to at least one element per row, as required by kernels."""
    return x if x.shape[1] else np.zeros((len(x), 1), x.dtype)
