# SPDX-License-Identifier: Apache-2.0
"""Shared by RandAugment, TrivialAugment and AutoAugment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from . import _native
from ._args import MissingArgException
from ._augmentation import Augmentation
from ._utils import explain_missing_shape


def chosen(suite: Sequence[Augmentation], excluded: Sequence[str] | None, name: str) -> list[Augmentation]:
    """The suite without excluded augmentations."""
    names = [aug.name for aug in suite]
    for other in excluded or ():
        if other not in names:
            raise ValueError(
                f"`{other}` was specified in `excluded`, but the {name} suite does not contain augmentation of that "
                f"name; it has {', '.join(names)}"
            )
    return [aug for aug in suite if aug.name not in (excluded or ())]


def kwargs_of(fill_value: Any, interp_type: Any, shape: Any) -> dict[str, Any]:
    """Arguments for augmentations."""
    return {"fill_value": fill_value, "interp_type": interp_type} | ({} if shape is None else {"shape": shape})


def native_table(
    augmentations: Sequence[Augmentation],
    bins: Sequence[int] | None,
    num_magnitude_bins: int,
    kwargs: dict[str, Any],
    who: str,
    suite: str,
) -> np.ndarray | None:
    """The table for `_auto_aug.augment`; None unless it supports all augmentations."""
    try:
        return _native.table(augmentations, bins, num_magnitude_bins, kwargs)
    except MissingArgException as e:
        raise explain_missing_shape(e, who, suite) from None
