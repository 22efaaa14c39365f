# SPDX-License-Identifier: Apache-2.0
"""Position of crop windows: the arguments of all cropping operators, and their arithmetic."""

from __future__ import annotations

import string
from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIImageType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator, PerSample

_INT64 = np.dtype("i8")

# Policies for windows that exceed the input; DALI has several names for some.
POLICIES = {
    "error": "error",
    "constant": "constant",
    "pad": "constant",
    "fill": "constant",
    "trim_to_shape": "trim",
    "edge": "edge",
    "clamp": "edge",
    "reflect": "reflect_1001",
    "1001": "reflect_1001",
    "reflect_1001": "reflect_1001",
    "101": "reflect_101",
    "reflect101": "reflect_101",
    "reflect1001": "reflect_1001",
    "reflect_101": "reflect_101",
    "wrap": "wrap",
}

_BORDERS = {"constant": 0, "edge": 1, "reflect_1001": 2, "reflect_101": 3, "wrap": 4}  # as in kernels/geometry/window.h
_CONVERTED = (DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8)


class WindowedInput(Operator, abstract=True):
    """Arguments of operators that read a window, which may exceed the input."""

    cuts = True
    policies = tuple(POLICIES)
    fill_values = Arg(
        [float], [0.0], "Values outside the input, with the policy 'constant': one value, or one per channel."
    )
    out_of_bounds_policy = Arg(
        str,
        "error",
        "What happens if the window extends beyond the input: 'error' raises an error, 'constant' ('pad', 'fill') "
        "fills with `fill_values`, 'trim_to_shape' cuts the window. crop and slice also accept 'edge' ('clamp'), "
        "which repeats the border, mirroring with the edge repeated ('reflect_1001', '1001', 'reflect') or not "
        "('reflect_101', '101'), and 'wrap'.",
    )
    dtype = Arg(DALIDataType, None, "Type of the output. By default that of the input.")
    output_dtype = Arg(DALIDataType, None, "A former name of `dtype`.", deprecated="use `dtype`")
    image_type = Arg(DALIImageType, None, "No longer used.", hidden=True, deprecated="it has no effect")

    def setup(self) -> None:
        given = self.values["out_of_bounds_policy"]
        policy = given.lower()
        if policy not in self.policies:
            raise ValueError(f"out_of_bounds_policy={given!r} is not supported; supported: {', '.join(self.policies)}")
        if {"dtype", "output_dtype"} <= self.given:
            raise TypeError(
                "got an unexpected 'output_dtype' deprecated argument when 'dtype' was already provided: it is "
                "a former name of `dtype`; give only `dtype`"
            )
        self.policy = POLICIES[policy]

    def out_type(self) -> DALIDataType | None:
        former = self.values["output_dtype"]
        return self.values["dtype"] if former is None else former

    def place(self, a: Arguments, x: Spec, start: np.ndarray, extent: np.ndarray) -> None:
        """Applies the policy, and sets `a.start` and `a.extent`, each (n, ndim)."""
        if self.policy == "trim":
            end = np.clip(start + extent, 0, x.shape)
            start = np.clip(start, 0, x.shape)
            extent = np.maximum(end - start, 0)
        elif self.policy == "error":
            if not windows_inside(a, start, extent, x.shape):
                SampleErrors.where(
                    ((start < 0) | (start + extent > x.shape)).any(axis=1),
                    lambda i: (
                        f"the window that begins at {start[i].tolist()} with the shape {extent[i].tolist()} "
                        f"reaches out of the input of shape {x.shape[i].tolist()} and can't be placed out of bounds; "
                        "choose an out_of_bounds_policy other than 'error', or another window"
                    ),
                )
        elif self.policy != "constant":  # an empty input has no border to repeat
            SampleErrors.where(
                ((x.shape == 0) & (extent > 0)).any(axis=1),
                lambda i: f"the input of shape {x.shape[i].tolist()} is empty and has no border to repeat",
            )
        a.start, a.extent = start, extent

    def fill_column(self, channels: np.ndarray, count: int) -> np.ndarray:
        """`fill_values` as a row (1, count). `channels` (n,): the samples' numbers of channels."""
        fill = np.asarray(self.values["fill_values"], "f4")
        if len(fill) > 1 and self.policy == "constant":
            SampleErrors.where(
                channels != len(fill),
                lambda i: (
                    f"there are {len(fill)} fill_values for {channels[i]} channels; give one value, or one per channel"
                ),
            )
        row = np.zeros((1, max(count, 1)), "f4")
        row[0, : len(fill)] = fill[: row.shape[1]]
        if len(fill) == 1:
            row[:] = fill
        return row


def windows_inside(a: Arguments, start: np.ndarray, extent: np.ndarray, shape: np.ndarray) -> bool:
    """Whether all windows (n, ndim) are inside samples of `shape`."""
    columns = (c.astype(_INT64, copy=False) for c in (start, extent, shape))
    return bool(a.native.call("settle_windows", *columns, *shape.shape, 0))


def needed_of(a: Arguments, start: np.ndarray, extent: np.ndarray, shape: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The part (origin, size) of an input of `shape` that is inside a window."""
    columns = (c.astype(_INT64, copy=False) for c in (start, extent, shape))
    (origin, at_origin), (size, at_size) = (a.native.allocate(shape.shape, _INT64) for _ in range(2))
    a.native.call("parts_inside", *columns, shape.size, at_origin, at_size)
    return origin, size


class WindowCopy(WindowedInput, abstract=True):
    """Base of operators whose output is a window of the input, converted to `dtype`. `plan` calls `place`."""

    kernel = "geometry/window"
    is_light = True
    in_place = True  # no copy if the decoder decodes only the window
    by_frame = False  # the window may select frames of a sequence
    windowed = string.ascii_uppercase.replace("C", "")  # not C, as fill values begin at the first channel

    def setup(self) -> None:
        super().setup()
        self.converts_to = self.out_type()
        fill = self.values["fill_values"]
        fill = fill if fill and self.policy == "constant" else [0.0]  # used only by this policy
        self.fill = np.array([fill], "f4")
        self.fill.setflags(write=False)
        self.same: np.dtype | None = None
        if self.converts_to is not None and self.converts_to not in _CONVERTED:
            self.same = to_numpy(self.converts_to)

    def outputs(self, a: Arguments, x: Spec, *arguments: Spec) -> Spec:
        # Not `in (None, x.dtype)`: for NumPy, None equals float64.
        if (self.same is not None and self.same != x.dtype) or (self.converts_to is not None and x.dtype.kind == "b"):
            names = ", ".join(t.name for t in _CONVERTED)
            raise ValueError(
                f"no conversion from {x.dtype.name} to {self.converts_to}; supported: {names}, or the type of the input"
            )
        self.fill_column(a.extent[:, x.axis("C")] if "C" in x.layout else np.ones(x.n, "i8"), 1)
        return x.like(shape=a.extent, dtype=self.converts_to)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        start = a.start + out.origin
        if self.policy in ("error", "trim", "constant"):
            return needed_of(a, start, out.stored, x.shape)
        inside = (start >= 0) & (start + out.stored <= x.shape)
        return np.where(inside, start, 0), np.where(inside, out.stored, x.shape)

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        fill, out = self.fill[0], specs[-1]
        return {
            "start": a.start + out.origin,
            "extent": x.shape,
            "origin": x.origin,
            "border": _BORDERS.get(self.policy, 0),
            "channels": x.axis("C") if len(fill) > 1 else -1,
            "fill": self.fill,
        }


class CropWindow(WindowedInput, abstract=True):
    """Arguments of operators that crop: size and relative position of the window."""

    crop = PerSample(
        [float],
        None,
        "Size of the window: (height, width), or (depth, height, width). 0 or less keeps the whole axis. In sequences "
        "without a depth axis, depth means frames.",
    )
    crop_d = PerSample(float, 0.0, "Depth of the window, for volumes. Requires `crop_h` and `crop_w`.")
    crop_h = PerSample(float, 0.0, "Height of the window in pixels. Requires `crop_w`; not together with `crop`.")
    crop_w = PerSample(float, 0.0, "Width of the window in pixels. Requires `crop_h`; not together with `crop`.")
    crop_pos_x = PerSample(float, 0.5, "Horizontal position of the window, from 0.0 (left) to 1.0 (right).")
    crop_pos_y = PerSample(float, 0.5, "Vertical position of the window, from 0.0 (top) to 1.0 (bottom).")
    crop_pos_z = PerSample(float, 0.5, "Position of the window along the depth, from 0.0 (front) to 1.0 (back).")
    rounding = Arg(str, "round", "Rounding of the first coordinate: 'round' (halves away from zero) or 'truncate'.")

    def setup(self) -> None:
        super().setup()
        given, rounding = self.given, self.values["rounding"]
        if rounding not in ("round", "truncate"):
            raise ValueError(f"rounding={rounding!r} is not supported; supported: round, truncate")
        if "crop" in given and given & {"crop_h", "crop_w", "crop_d"}:
            raise ValueError("give the window either as `crop` or as `crop_h` and `crop_w`, not both")
        if ("crop_h" in given) != ("crop_w" in given) or ("crop_d" in given and "crop_h" not in given):
            raise ValueError("`crop_h` and `crop_w` must be given together, and `crop_d` only with them")
        crop = self.values["crop"]
        if crop is not None and len(crop) not in (2, 3):
            raise ValueError(f"`crop` takes (height, width) or (depth, height, width), got {crop}")

    def crop_window(self, a: Arguments, x: Spec) -> None:
        """Sets the window `a.start`, `a.extent`, each (n, ndim).

        Along an axis of size n a window of size c at position p begins at round(p * (n - c)), where p is a float32 and
        the product a float64.
        """
        sizes = {"D": a.crop_d, "H": a.crop_h, "W": a.crop_w}
        if a.crop is not None:
            if a.crop.shape[1] not in (2, 3):
                raise ValueError(f"`crop` takes 2 or 3 values per sample, got {a.crop.shape[1]}")
            sizes = dict(zip("WHD", a.crop.T[::-1]))
        native, size = a.native, x.shape.shape
        (start, at_start), (extent, at_extent) = native.allocate(size, _INT64), native.allocate(size, _INT64)
        extent[...] = x.shape
        for name, position in (("D", a.crop_pos_z), ("H", a.crop_pos_y), ("W", a.crop_pos_x)):
            d = x.axis(name)
            if name == "D" and d < 0:
                d = x.axis("F")  # without a depth axis, the third value counts frames
            if d < 0:
                continue
            outside = native.call(
                "crop_windows",
                *(x.shape, x.n, x.ndim, d, sizes.get(name), position),
                *(self.values["rounding"] == "truncate", at_start, at_extent),
            )
            if outside:
                size = sizes[name]
                SampleErrors.where(
                    ~np.isfinite(size),
                    lambda i, s=size, n=name: f"the size of the window along {n} must be finite, got {s[i]:g}",
                )
                SampleErrors.where(
                    (size >= 1) & ~((position >= 0) & (position <= 1)),
                    lambda i, p=position, n=name: f"the position {p[i]:g} of the window along {n} is outside of [0, 1]",
                )
        self.place(a, x, start, extent)
