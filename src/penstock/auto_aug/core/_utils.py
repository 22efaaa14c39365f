# SPDX-License-Identifier: Apache-2.0
"""Translations whose range depends on whether the shapes of images are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...data_node import DataNode
from .. import augmentations as a
from ._args import MissingArgException
from ._augmentation import Augmentation
from ._select import select


def max_translate_hw(max_translate: Any) -> tuple[Any, Any]:
    """The maximum translations (down, right), from one value or two."""
    if isinstance(max_translate, (tuple, list)):
        height, width = max_translate
        return height, width
    return max_translate, max_translate


def parse_validate_offset(
    use_shape: bool,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
    default_translate_abs: float = 250,
    default_translate_rel: float = 1.0,
) -> tuple[Any, Any]:
    """The maximum translations: relative to the shape with `use_shape`, otherwise in pixels."""
    if not isinstance(use_shape, bool):
        raise TypeError(f"`use_shape` is True or False, got {use_shape!r}")
    wrong, right = (
        ("max_translate_abs", "max_translate_rel") if use_shape else ("max_translate_rel", "max_translate_abs")
    )
    values = {"max_translate_abs": max_translate_abs, "max_translate_rel": max_translate_rel}
    if values[wrong] is not None:
        how = "with" if use_shape else "without"
        raise ValueError(f"the argument `{wrong}` cannot be used {how} image shapes; use `{right}`")
    default = default_translate_rel if use_shape else default_translate_abs
    return max_translate_hw(default if values[right] is None else values[right])


def get_translations(
    use_shape: bool,
    default_translate_abs: float,
    default_translate_rel: float,
    max_translate_abs: Any = None,
    max_translate_rel: Any = None,
) -> list[Augmentation]:
    """Augmentations that translate along x and along y."""
    height, width = parse_validate_offset(
        use_shape, max_translate_abs, max_translate_rel, default_translate_abs, default_translate_rel
    )
    x, y = (a.translate_x, a.translate_y) if use_shape else (a.translate_x_no_shape, a.translate_y_no_shape)
    return [x.augmentation((0, width), True), y.augmentation((0, height), True)]


def explain_missing_shape(error: MissingArgException, auto_aug_name: str, ref_suite_name: str) -> Exception:
    """The error; if `shape` is missing, an error with advice."""
    if error.missing_args != ["shape"] or error.augmentation.op not in (a.translate_x.op, a.translate_y.op):
        return error
    return ValueError(
        f"the augmentation `{error.augmentation.name}` requires `shape` argument, the height and width of images: pass "
        f"it to `{auto_aug_name}` (fn.peek_image_shape reads it from encoded images). Or use shifts in pixels, "
        f"`translate_x_no_shape` and `translate_y_no_shape`; see `use_shape` of `{ref_suite_name}`"
    )


def pretty_select(
    augmentations: Sequence[Augmentation],
    aug_ids: DataNode,
    op_kwargs: dict[str, Any],
    auto_aug_name: str,
    ref_suite_name: str,
) -> DataNode:
    """`select`, with advice in the error if `shape` is missing."""
    try:
        return select(augmentations, aug_ids, **op_kwargs)
    except MissingArgException as e:
        raise explain_missing_shape(e, auto_aug_name, ref_suite_name) from None
