# SPDX-License-Identifier: Apache-2.0
"""RandAugment: Cubuk et al., RandAugment: Practical automated data augmentation with a reduced search space
(https://arxiv.org/abs/1909.13719)."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from .. import fn, types
from ..core.constructors import keywords_checked
from ..data_node import DataNode
from ..types import DALIInterpType
from . import augmentations as a
from .core import _Augmentation, _native, signed_bin
from .core._args import forbid_unused_kwargs
from .core._suites import chosen, kwargs_of, native_table
from .core._utils import get_translations, pretty_select


@keywords_checked
def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: list[str] | None = None,
) -> DataNode:
    """Applies RandAugment: `n` augmentations, drawn for each sample, one after the other, all of strength `m`.

    * `data`: uint8 images (HWC) or sequences (FHWC), on the CPU or the GPU.
    * `m`: a magnitude bin, 0 to `num_magnitude_bins` - 1.
    * `shape`: height and width of the images. If given, the maximum translation is `max_translate_rel` (by default 100
      / 224) times the shape, otherwise `max_translate_abs` pixels (100). Both take one number, or one for the height
      and one for the width.
    * `fill_value`: value outside the image; None repeats the border.
    * `interp_type`: `types.INTERP_LINEAR` (the default) or `types.INTERP_NN`.
    * `seed`: seed of the random choices. By default derived from the pipeline's.
    * `monotonic_mag`: whether all augmentations get stronger with the bin. If False, ranges are those of AutoAugment:
      posterize and solarize get weaker; brightness, contrast, color and sharpness are weakest in the middle.
    * `excluded`: names of augmentations that are not used.

    >>> from penstock import pipeline_def, types
    >>> from penstock.auto_aug import rand_augment
    >>> import numpy as np
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = types.Constant(np.zeros((8, 8, 3), np.uint8), layout="HWC")
    ...     return rand_augment.rand_augment(x, n=2, m=17)
    >>> pipe().run()[0].at(0).shape
    (8, 8, 3)
    """
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    augmentations = chosen(suite(shape is not None, max_translate_abs, max_translate_rel), excluded, "RandAugment")
    kwargs = kwargs_of(fill_value, interp_type, shape)
    return apply_rand_augment(augmentations, data, n, m, num_magnitude_bins=num_magnitude_bins, seed=seed, **kwargs)


def apply_rand_augment(
    augmentations: Sequence[_Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Applies RandAugment with a user-defined list of augmentations; see `rand_augment`.

    `kwargs`, such as `shape`, `fill_value` and `interp_type`, are passed to the augmentations that accept them.
    """
    who = "apply_rand_augment"
    if not isinstance(n, int) or n < 0:
        raise ValueError(f"the number of operations to apply, `n`, must be a non-negative integer, got {n!r}")
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ValueError(f"`num_magnitude_bins` must be a positive integer, got {num_magnitude_bins!r}")
    if not isinstance(m, int) or not 0 <= m < num_magnitude_bins:
        raise ValueError(f"the magnitude bin `m` must be an integer from `[0, {num_magnitude_bins - 1}]`, got {m!r}")
    if n == 0:
        warnings.warn(f"`{who}` was called with `n=0`: no augmentation will be applied", Warning, stacklevel=2)
        return data
    if len(augmentations) == 0:
        raise ValueError(f"the `augmentations` list of `{who}` cannot be empty, unless n=0")
    forbid_unused_kwargs(augmentations, kwargs, who)
    table = native_table(augmentations, [m], num_magnitude_bins, kwargs, who, "get_rand_augment_suite")
    if table is not None:
        given = _native.accepted(augmentations, kwargs)
        return _native.augment(data, table=table, stages=n, seed=seed, **given)
    shape = None if n == 1 else (n,)
    indices = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, shape=shape, dtype=types.INT32)
    signed = any(aug.randomly_negate for aug in augmentations)
    bins: Any = signed_bin(m, seed=seed, shape=shape) if signed else m
    for i in range(n):
        index, bin_ = (indices, bins) if n == 1 else (indices[i], bins[i] if signed else bins)
        call = {"data": data, "magnitude_bin": bin_, "num_magnitude_bins": num_magnitude_bins, **kwargs}
        data = pretty_select(augmentations, index, call, who, "get_rand_augment_suite")
    return data


def get_rand_augment_suite(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[_Augmentation]:
    """Returns the augmentations of RandAugment, whose strength grows with the bin.

    With `use_shape`, translations are relative to the shape, up to `max_translate_rel` (100 / 224), otherwise up to
    `max_translate_abs` pixels (100).
    """
    return [
        *get_translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
        a.brightness.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.contrast.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.color.augmentation((0, 0.9), True, a.shift_enhance_range),
        a.sharpness.augmentation((0, 0.9), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[_Augmentation]:
    """Same as `get_rand_augment_suite`, with the ranges of AutoAugment for colours, posterize and solarize, whose
    strength does not grow with the bin."""
    return [
        *get_translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation((0, 0.3), True),
        a.shear_y.augmentation((0, 0.3), True),
        a.rotate.augmentation((0, 30), True),
        a.brightness.augmentation((0.1, 1.9), False, None),
        a.contrast.augmentation((0.1, 1.9), False, None),
        a.color.augmentation((0.1, 1.9), False, None),
        a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        a.solarize.augmentation((0, 256), False, None),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
