# SPDX-License-Identifier: Apache-2.0
"""Encoded images to a window given by coordinates."""

from __future__ import annotations

import numpy as np

from ...core.batch import Batch
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, PerSample
from ._decoder import Decoder

_BEGINS, _ENDS = ("start", "rel_start"), ("end", "rel_end", "shape", "rel_shape")


class ImageSlice(Decoder):
    """Decodes a window of an image. Equivalent to `decoders.image` followed by `slice`, but decodes only the window.

    The window is given by arguments (`start` or `rel_start`; `end`, `rel_end`, `shape` or `rel_shape`), or by two
    further inputs, anchor and shape, with one value for each of `axis_names` (or `axes`). Relative values are shares of
    the image's extent. The first and last coordinates are rounded to whole pixels (halves away from zero). The window
    must lie inside the image.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> file = np.frombuffer(b"P5 3 1 255 abc", np.uint8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     image = types.Constant(file)
    ...     return fn.decoders.image_slice(image, start=[1], shape=[2], axis_names="W", output_type=types.GRAY)
    >>> pipe().run()[0].at(0).tolist()
    [[[98], [99]]]
    """

    inputs = (1, 3)
    peeks = (0, 1, 2)
    deprecated = ("ImageDecoderSlice", "HostDecoderSlice", "nvJPEGDecoderSlice")
    former_defaults = {"nvJPEGDecoderSlice": {"device": "mixed"}}

    axes = PerSample([int], [1, 0], "Axes of the window, 0 (height) and 1 (width). Used if `axis_names` is not given.")
    axis_names = Arg(Layout, "WH", "Axes of the window, by name. Takes precedence over `axes`.")
    start = PerSample([int], None, "First pixel of the window.")
    rel_start = PerSample([float], None, "First pixel of the window, as a share of the extent.")
    end = PerSample([int], None, "End of the window in pixels, exclusive.")
    rel_end = PerSample([float], None, "End of the window, as a share of the extent.")
    shape = PerSample([int], None, "Size of the window in pixels.")
    rel_shape = PerSample([float], None, "Size of the window, as a share of the image's.")
    normalized_anchor = Arg(bool, True, "Whether the input with the anchor has shares of the extent, or pixels.")
    normalized_shape = Arg(bool, True, "Whether the input with the shape has shares of the extent, or pixels.")

    def setup(self) -> None:
        super().setup()
        given = self.given
        for names in (_BEGINS, _ENDS):
            both = sorted(given.intersection(names))
            if len(both) > 1:
                raise ValueError(f"{self.display_name()}: {' and '.join(both)} exclude each other")
        names = self.values["axis_names"]
        if "axis_names" in given or "axes" not in given:
            if not names or not set(names) <= set("HW") or len(set(names)) != len(names):
                raise ValueError(f"{self.display_name()}: axis_names takes some of 'W' and 'H', got {str(names)!r}")

    def place(self, a: Arguments) -> None:
        axes = self._axes(a)
        k = axes.shape[1]
        extent = np.take_along_axis(np.stack([a.height, a.width], axis=1), axes, axis=1)
        begin, end = self._window(a, extent, k)
        SampleErrors.where(
            (end < begin).any(axis=1),
            lambda i: f"the window ends at {end[i].tolist()} before it begins at {begin[i].tolist()}",
        )
        first = np.zeros((a.n, 2), "i8")
        last = np.stack([a.height, a.width], axis=1)
        np.put_along_axis(first, axes, _rounded(begin), axis=1)
        np.put_along_axis(last, axes, _rounded(end), axis=1)
        (a.y, a.x), (a.h, a.w) = first.T, (last - first).T
        self.refuse_outside(a)

    def _axes(self, a: Arguments) -> np.ndarray:
        """Axes (n, k): 0 for height, 1 for width."""
        given = self.given
        if "axis_names" in given or "axes" not in given:
            return np.tile(np.array(["HW".index(c) for c in a.axis_names]), (a.n, 1))
        axes = a.axes.astype("i8")
        wrong = (axes < -2) | (axes > 1)
        SampleErrors.where(wrong.any(axis=1), lambda i: f"axes are 0 (height) and 1 (width); got {axes[i].tolist()}")
        axes = axes % 2
        SampleErrors.where(
            (np.sort(axes, axis=1)[:, :-1] == np.sort(axes, axis=1)[:, 1:]).any(axis=1),
            lambda i: f"axes repeat: {axes[i].tolist()}",
        )
        return axes

    def _window(self, a: Arguments, extent: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """Begin and end (n, k) of the window in pixels, before rounding."""
        given = self.given
        anchor, shape = (a.batches + [None, None])[1:3]
        named = given.intersection(_BEGINS + _ENDS)
        if anchor is not None:
            if named:
                raise ValueError(f"the window is given by inputs and by {', '.join(sorted(named))}; give one of them")
            if shape is None:
                raise ValueError("a window given by inputs needs two of them, anchor and shape")
            begin = _pixels(_column(anchor, a.n, k, "anchor"), extent, a.normalized_anchor)
            return begin, begin + _pixels(_column(shape, a.n, k, "shape"), extent, a.normalized_shape)
        if not named:
            raise ValueError(
                "no window is given; give start or rel_start, and end, rel_end, shape or rel_shape, or two more inputs"
            )
        begin, end = np.zeros((a.n, k)), extent.astype("f8")
        for name in sorted(named, key=(_BEGINS + _ENDS).index):
            values = getattr(a, name)
            if values.shape[1] != k:
                raise ValueError(f"'{name}' has {values.shape[1]} values for {k} axes")
            value = _pixels(values, extent, name.startswith("rel_"))
            if name in _BEGINS:
                begin = value
            else:
                end = begin + value if name.endswith("shape") else value
        return begin, end


def _pixels(values: np.ndarray, extent: np.ndarray, relative: bool) -> np.ndarray:
    values = values.astype("f8")
    return values * extent if relative else values


def _rounded(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x)).astype("i8")


def _column(batch: Batch, n: int, k: int, name: str) -> np.ndarray:
    """The values (n, k) of an input with k numbers per sample."""
    if not batch.spec.is_dense or (batch.spec.volumes() != k).any():
        raise ValueError(
            f"the input with the {name} needs {k} values per sample; got shapes {batch.spec.shape.tolist()[:4]}"
        )
    return batch.array().reshape(n, k)
