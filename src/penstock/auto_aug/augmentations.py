# SPDX-License-Identifier: Apache-2.0
"""The augmentations of AutoAugment, RandAugment and TrivialAugment, for uint8 images (HWC) and sequences (FHWC).

They are created by `@augmentation` and called with a batch, `magnitude_bin` and `num_magnitude_bins`. Change other
settings with `shear_x.augmentation(mag_range=(0, 0.5))`. `fill_value` is the value outside the image (None: the border
is repeated), `interp_type` is `types.INTERP_LINEAR` (None, the default) or `types.INTERP_NN`. Each augmentation is one
operator; in `auto_augment`, `rand_augment`, `trivial_augment` and `select`, one operator does all of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import fn
from ..data_node import DataNode
from ..types import DALIInterpType
from .core import _native
from .core._native import step
from .core.decorator import augmentation


def warp_x_param(magnitude: float) -> list[float]:
    """The magnitude along x."""
    return [magnitude, 0]


def warp_y_param(magnitude: float) -> list[float]:
    """The magnitude along y."""
    return [0, magnitude]


def _warp(
    kind: str, data: DataNode, parameter: Any, fill_value: int | None, interp_type: DALIInterpType | None, **more: Any
) -> DataNode:
    return _native.apply(kind, data, parameter, fill_value=fill_value, interp_type=interp_type, **more)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_x_param)
@step("shear")
def shear_x(
    data: DataNode, shear: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Shears each row to the right by `shear` (x, y) times its distance from the upper border."""
    return _warp("shear", data, shear, fill_value, interp_type)


@augmentation(mag_range=(0, 0.3), randomly_negate=True, mag_to_param=warp_y_param)
@step("shear")
def shear_y(
    data: DataNode, shear: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Shears each column down by `shear` (x, y) times its distance from the left border."""
    return _warp("shear", data, shear, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_x_param)
@step("translate_relative")
def translate_x(
    data: DataNode, rel_offset: Any, shape: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Translates to the right by `rel_offset` (x, y) times the width in `shape` (height, width)."""
    return _warp("translate_relative", data, rel_offset, fill_value, interp_type, shape=shape)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_x_param, name="translate_x")
@step("translate")
def translate_x_no_shape(
    data: DataNode, offset: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Translates to the right by `offset` (x, y) pixels."""
    return _warp("translate", data, offset, fill_value, interp_type)


@augmentation(mag_range=(0.0, 1.0), randomly_negate=True, mag_to_param=warp_y_param)
@step("translate_relative")
def translate_y(
    data: DataNode, rel_offset: Any, shape: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Translates down by `rel_offset` (x, y) times the height in `shape` (height, width)."""
    return _warp("translate_relative", data, rel_offset, fill_value, interp_type, shape=shape)


@augmentation(mag_range=(0, 250), randomly_negate=True, mag_to_param=warp_y_param, name="translate_y")
@step("translate")
def translate_y_no_shape(
    data: DataNode, offset: Any, fill_value: int | None = 128, interp_type: DALIInterpType | None = None
) -> DataNode:
    """Translates down by `offset` (x, y) pixels."""
    return _warp("translate", data, offset, fill_value, interp_type)


@augmentation(mag_range=(0, 30), randomly_negate=True)
@step("rotate")
def rotate(
    data: DataNode,
    angle: Any,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    rotate_keep_size: bool = True,
) -> DataNode:
    """Rotates counter-clockwise by `angle` degrees around the centre; without `rotate_keep_size`, the image is enlarged
    so that nothing is cut off."""
    if rotate_keep_size:
        return _warp("rotate", data, angle, fill_value, interp_type)
    return fn.rotate(data, angle=angle, fill_value=fill_value, interp_type=interp_type, keep_size=False)


def shift_enhance_range(magnitude: Any) -> Any:
    """Factors around 1, which changes nothing, of magnitudes around 0."""
    return 1 + magnitude


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@step("brightness")
def brightness(data: DataNode, parameter: Any) -> DataNode:
    """Multiplies all values."""
    return _native.apply("brightness", data, parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@step("contrast")
def contrast(data: DataNode, parameter: Any) -> DataNode:
    """Multiplies the distances of all values from the mean luma of the image, 0.299 R + 0.587 G + 0.114 B."""
    return _native.apply("contrast", data, parameter)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=shift_enhance_range)
@step("color")
def color(data: DataNode, parameter: Any) -> DataNode:
    """Multiplies the saturation, as `fn.saturation`."""
    return _native.apply("color", data, parameter)


def sharpness_kernel(magnitude: Any) -> np.ndarray:
    """A filter (3, 3) that sharpens for magnitudes up to 1 and smooths for those down to -1."""
    smooth = np.full((3, 3), 1 / 13, np.float32)
    smooth[1, 1] = 5 / 13
    keep = np.zeros((3, 3), np.float32)
    keep[1, 1] = 1
    return -magnitude * smooth + (1 + magnitude) * keep


def sharpness_kernel_shifted(magnitude: Any) -> np.ndarray:
    """The same for magnitudes in [0, 2], of which 1 changes nothing."""
    return sharpness_kernel(magnitude - 1)


@augmentation(mag_range=(0, 0.9), randomly_negate=True, mag_to_param=sharpness_kernel, param_device="auto")
@step("sharpness")
def sharpness(data: DataNode, kernel: Any) -> DataNode:
    """Filters with `kernel` (3, 3), as a correlation; the border is mirrored without its outermost pixel."""
    return _native.apply("sharpness", data, kernel)


def poster_mask_uint8(magnitude: Any) -> np.ndarray:
    """A mask of the `magnitude` highest bits; at least one, so that no image gets black."""
    bits = min(max(int(np.round(magnitude)), 1), 8)
    return np.array(256 - (1 << 8 - bits), np.uint8)


@augmentation(mag_range=(0, 4), mag_to_param=poster_mask_uint8, param_device="auto")
@step("posterize")
def posterize(data: DataNode, mask: Any) -> DataNode:
    """Keeps the bits of `mask`."""
    return _native.apply("posterize", data, mask)


@augmentation(mag_range=(256, 0), param_device="auto")
@step("solarize")
def solarize(data: DataNode, threshold: Any) -> DataNode:
    """Inverts values of at least `threshold`."""
    return _native.apply("solarize", data, threshold)


def solarize_add_shift(shift: Any) -> Any:
    """The shift as uint8."""
    if shift >= 128:
        raise ValueError(f"solarize_add takes shifts below 128, got {shift}")
    return np.uint8(shift)


@augmentation(mag_range=(0, 110), param_device="auto", mag_to_param=solarize_add_shift)
@step("solarize_add")
def solarize_add(data: DataNode, shift: Any) -> DataNode:
    """Adds `shift` to values below 128."""
    return _native.apply("solarize_add", data, shift)


@augmentation
@step("invert")
def invert(data: DataNode, _: Any) -> DataNode:
    """Inverts the image: 255 minus each value."""
    return _native.apply("invert", data, None)


@augmentation
@step("equalize")
def equalize(data: DataNode, _: Any) -> DataNode:
    """Equalises the histogram of each channel, by OpenCV's formula."""
    return _native.apply("equalize", data, None)


@augmentation
@step("auto_contrast")
def auto_contrast(data: DataNode, _: Any) -> DataNode:
    """Stretches the values of each channel to the range from 0 to 255."""
    return _native.apply("auto_contrast", data, None)


@augmentation
@step("identity")
def identity(data: DataNode, _: Any) -> DataNode:
    """Returns the image unchanged."""
    return data
