# SPDX-License-Identifier: Apache-2.0
"""TrivialAugment: Müller, Hutter: TrivialAugment: Tuning-free Yet State-of-the-Art Data Augmentation
(https://arxiv.org/abs/2103.10158)."""

from __future__ import annotations

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
def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
    excluded: list[str] | None = None,
) -> DataNode:
    """Applies TrivialAugment Wide: one augmentation of one of `num_magnitude_bins` strengths, drawn for each sample.

    * `data`: uint8 images (HWC) or sequences (FHWC), on the CPU or the GPU.
    * `shape`: height and width of the images. If given, the maximum translation is `max_translate_rel` (by default 1.0)
      times the shape, otherwise `max_translate_abs` pixels (32). Both take one number, or one for the height and one
      for the width.
    * `fill_value`: value outside the image; None repeats the border.
    * `interp_type`: `types.INTERP_LINEAR` (the default) or `types.INTERP_NN`.
    * `seed`: seed of the random choices. By default derived from the pipeline's.
    * `excluded`: names of augmentations that are not used.

    >>> from penstock import pipeline_def, types
    >>> from penstock.auto_aug import trivial_augment
    >>> import numpy as np
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = types.Constant(np.zeros((8, 8, 3), np.uint8), layout="HWC")
    ...     return trivial_augment.trivial_augment_wide(x, excluded=["rotate"])
    >>> pipe().run()[0].at(0).shape
    (8, 8, 3)
    """
    suite = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    augmentations = chosen(suite, excluded, "TrivialAugmentWide")
    kwargs = kwargs_of(fill_value, interp_type, shape)
    return apply_trivial_augment(augmentations, data, num_magnitude_bins=num_magnitude_bins, seed=seed, **kwargs)


def apply_trivial_augment(
    augmentations: Sequence[_Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Applies TrivialAugment with a user-defined list of augmentations; see `trivial_augment_wide`.

    `kwargs`, such as `shape`, `fill_value` and `interp_type`, are passed to the augmentations that accept them.
    """
    who = "apply_trivial_augment"
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ValueError(f"`num_magnitude_bins` must be a positive integer, got {num_magnitude_bins!r}")
    if len(augmentations) == 0:
        raise ValueError(f"the `augmentations` list of `{who}` cannot be empty")
    forbid_unused_kwargs(augmentations, kwargs, who)
    suite = "get_trivial_augment_wide_suite"
    table = native_table(augmentations, None, num_magnitude_bins, kwargs, who, suite)
    if table is not None:
        given = _native.accepted(augmentations, kwargs)
        return _native.augment(data, table=table, bins=num_magnitude_bins, seed=seed, **given)
    bins: Any = fn.random.uniform(values=list(range(num_magnitude_bins)), dtype=types.INT32, seed=seed)
    if any(aug.randomly_negate for aug in augmentations):
        bins = signed_bin(bins, seed=seed)
    index = fn.random.uniform(values=list(range(len(augmentations))), seed=seed, dtype=types.INT32)
    call = {"data": data, "magnitude_bin": bins, "num_magnitude_bins": num_magnitude_bins, **kwargs}
    return pretty_select(augmentations, index, call, who, suite)


def get_trivial_augment_wide_suite(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> list[_Augmentation]:
    """Returns the 14 augmentations of TrivialAugment's wide space.

    With `use_shape`, translations are relative to the shape, up to `max_translate_rel` (1.0), otherwise up to
    `max_translate_abs` pixels (32).
    """
    return [
        *get_translations(use_shape, 32, 1.0, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation((0, 0.99), True),
        a.shear_y.augmentation((0, 0.99), True),
        a.rotate.augmentation((0, 135), True),
        a.brightness.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.contrast.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.color.augmentation((0.01, 0.99), True, a.shift_enhance_range),
        a.sharpness.augmentation((0.01, 0.99), True, a.sharpness_kernel),
        a.posterize.augmentation((8, 2), False, a.poster_mask_uint8),
        a.solarize.augmentation((256, 0)),
        a.equalize,
        a.auto_contrast,
        a.identity,
    ]
