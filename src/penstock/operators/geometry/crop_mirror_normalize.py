# SPDX-License-Identifier: Apache-2.0
"""Crops, mirrors, normalises and reorders axes in one pass."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, DALIImageType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, PerSample
from ...core.pixel_steps import are_fractions, warn_of_fractions
from ...core.traced import known_values
from ._crop_window import CropWindow, needed_of
from .crop import Crop

_OUTPUTS = (DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8, DALIDataType.INT8)
_KEPT = 16
_WINDOW = frozenset({"crop", "crop_d", "crop_h", "crop_w"})
_PLACE = frozenset({"crop_pos_x", "crop_pos_y", "crop_pos_z", "rounding", "out_of_bounds_policy"})
_INT32, _INT64 = np.dtype("i4"), np.dtype("i8")
_INPUT_NAMES = ("uint8", "uint16", "int16", "int32", "float16", "float32")
_INPUTS = frozenset(map(np.dtype, _INPUT_NAMES))


class CropMirrorNormalize(CropWindow):
    """Crops, flips and normalises: `out = scale * (in - mean) / std + shift`, with axes ordered by `output_layout`.

    Computed in float32 as `(in - m) * (scale / std)` with `m = mean - shift * std / scale`; integers are rounded
    (halves away from zero) and clamped. Filled values (outside the input, padded channels) are not normalised. Input:
    uint8, uint16, int16, int32, float16 or float32. The sizes of the window are truncated to integers.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.arange(18, dtype=np.uint8).reshape(2, 3, 3), layout="HWC")
    ...     return fn.crop_mirror_normalize(x, crop=(1, 2), crop_pos_x=0, crop_pos_y=0, mirror=1, mean=[0, 1, 2], std=2)
    >>> pipe().run()[0].at(0).tolist()
    [[[1.5, 0.0]], [[1.5, 0.0]], [[1.5, 0.0]]]
    """

    layouts = ("HWC", "CHW", "DHWC", "CDHW", "FHWC", "FCHW", "CFHW", "FDHWC", "FCDHW", "CFDHW")
    is_light = True
    kernel = "geometry/crop_mirror_normalize"
    by_frame = False  # F may be another axis in the output
    policies = ("error", "constant", "pad", "trim_to_shape")

    dtype = Arg(DALIDataType, DALIDataType.FLOAT, "Type of the output: FLOAT, FLOAT16, UINT8 or INT8.")
    mean = PerSample([float], [0.0], "Mean that is subtracted: one value, or one per channel.")
    std = PerSample([float], [1.0], "Standard deviation to divide by: one value, or one per channel.")
    scale = Arg(float, 1.0, "Factor of the normalised values, for integer outputs.")
    shift = Arg(float, 0.0, "Value added last, for unsigned outputs.")
    mirror = PerSample(int, 0, "If not 0, flips the window horizontally.")
    output_layout = Arg(Layout, Layout("CHW"), "Order of the output's axes. Empty: that of the input.")
    pad_output = Arg(
        bool, False, "Pads channels to a power of 2, with 0 or the value of `fill_values` if it is a single one."
    )
    image_type = Arg(DALIImageType, None, "No longer used.", hidden=True, deprecated="it has no effect")

    def setup(self) -> None:
        super().setup()
        if self.out_type() not in _OUTPUTS:
            raise ValueError(
                f"dtype={self.out_type()} is not supported; supported: {', '.join(t.name for t in _OUTPUTS)}"
            )
        mean, std = self.values["mean"], self.values["std"]
        if mean and std and len(mean) != len(std) and 1 not in (len(mean), len(std)):
            raise ValueError(
                f"`mean` has {len(mean)} values and `std` {len(std)}; give one value or one per channel for each"
            )
        self.type = to_numpy(self.out_type())
        self.normalises_alike = mean is not None and std is not None
        self.has_fractions = self.normalises_alike and self.values["scale"] == 1 and are_fractions(mean, std)
        self._orders: dict[str, tuple[str, list[int], np.ndarray]] = {}  # by layout of the input
        self._normalisations: dict[bytes | None, tuple[np.ndarray, ...]] = {}  # by channels of a batch

    def window_first(self) -> tuple[type[Crop], frozenset[str]] | None:
        crops = self.given & _WINDOW and self.policy != "constant"  # filled values are not normalised
        return (_Window, (_WINDOW | _PLACE) & self.given) if crops else None

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype not in _INPUTS:
            raise ValueError(
                f"input 0 has the type {x.dtype.name}, which is not supported; supported: {', '.join(_INPUT_NAMES)}"
            )
        if self.has_fractions and x.dtype == np.uint8:
            self.has_fractions = False  # checks only once
            warn_of_fractions("fn.crop_mirror_normalize", ("mean", "std"), self.values["mean"], self.values["std"])
        a.layout, a.axes, a.axis = self._orders.get(x.layout) or self._order(x.layout)
        self.crop_window(a, x)
        channels = x.extent("C")
        # For constant arguments, the result depends only on the channels, which rarely change.
        key = None
        if self.normalises_alike:
            channels = known_values(channels)
            key = channels.tobytes()
        known = self._normalisations.get(key)
        if known is None:
            known = self._normalisation(a, channels)
            if key is not None and len(self._normalisations) < _KEPT:
                for array in known:
                    array.setflags(write=False)
                self._normalisations[key] = known
        a.channels, a.fill, a.offset, a.factor = known

    def _order(self, given: str) -> tuple[str, list[int], np.ndarray]:
        """The output's layout, and the input axis of each output axis, as a list and as a row for the kernel."""
        layout = self.values["output_layout"] or given
        if sorted(layout) != sorted(given):
            raise ValueError(
                f"output_layout='{layout}' is not made of the axes of the input's layout '{given}'; give, say, "
                f"'{''.join(c for c in given if c == 'F')}C{''.join(c for c in given if c not in 'FC')}'"
            )
        axes = [given.find(c) for c in layout]
        axis = np.array([axes], "i4")
        axis.setflags(write=False)
        self._orders[given] = layout, axes, axis
        return layout, axes, axis

    def _normalisation(
        self, a: Arguments, channels: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The output's number of channels (n,), and per channel (n or 1, k) the fill value, the mean to subtract and
        the factor."""
        padded = (
            np.left_shift(1, np.ceil(np.log2(np.maximum(channels, 1))).astype("i8"))
            if a.pad_output
            else channels.copy()
        )
        most = int(padded.max(initial=1))
        fill = self.fill_column(channels, most)
        if len(self.values["fill_values"]) > 1:  # one per channel of the input
            fill = np.where(np.arange(fill.shape[1]) < channels[:, None], fill, np.float32(0))
        for name, values in (("mean", a.mean), ("std", a.std)):
            count = values.shape[1]
            SampleErrors.where(
                (count != channels) & (count != padded) & (count != 1),
                lambda i, name=name, count=count: (
                    f"`{name}` has {count} values for {channels[i]} channels; give one, or one per channel"
                ),
            )
        if not len(channels):
            return padded, fill, *np.zeros((2, 0, most), "f4")
        scale, shift = np.float32(a.scale), np.float32(a.shift)
        with np.errstate(divide="ignore", invalid="ignore"):
            return padded, fill, _wide(a.mean - shift * a.std / scale, most), _wide(scale / a.std, most)

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        k = len(a.axes)
        shape, at = a.native.allocate((x.n, k), _INT64)
        a.native.call("take_axes", a.extent, x.n, k, a.axis, k, at)
        if a.pad_output:
            shape[:, a.layout.find("C")] = a.channels
        return x.like(shape=shape, dtype=self.type, layout=a.layout)

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray]:
        return (a.start, a.extent) if self.policy == "error" else needed_of(a, a.start, a.extent, x.shape)

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        first, at = a.native.allocate((x.n, len(a.axes)), _INT64)
        mirror, mirrored, at_mirrored = None, -1, None
        if self.values["mirror"] != 0:
            mirror = a.mirror
            mirrored, at_mirrored = a.native.allocate(x.n, _INT32)
        a.native.call(
            "first_elements",
            *(a.start, x.origin, x.n, a.axis, len(a.axes), mirror, a.layout.find("W"), out.shape, at, at_mirrored),
        )
        return {
            "axis": a.axis,
            "first": first,
            "mirrored": mirrored,
            "channels": a.layout.find("C"),
            "mean": a.offset,
            "scale": a.factor,
            "fill": a.fill,
        }


def _wide(values: np.ndarray, count: int) -> np.ndarray:
    """Broadcasts (n, k) to (n, count): one value for all channels, or one per channel."""
    out = np.zeros((len(values), count), "f4")
    out[:, : values.shape[1]] = values
    return out if values.shape[1] > 1 else np.repeat(values, count, axis=1).astype("f4", copy=False)


class _Window(Crop, abstract=True):
    """The cropping of the operator above, as a separate operator."""

    fn_name = "crop"

    @classmethod
    def display_name(cls) -> str:
        return CropMirrorNormalize.display_name()
