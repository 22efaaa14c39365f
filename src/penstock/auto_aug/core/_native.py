# SPDX-License-Identifier: Apache-2.0
"""Augmentations that one operator applies to all samples at once, individually for each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core.op import REGISTRY
from ...data_node import DataNode
from ...graph import trace
from ...graph.placement import origin
from ...operators.augment._steps import FLOATS, rows_of

if TYPE_CHECKING:
    from ._augmentation import Augmentation

_STEP = "_penstock_step"  # attribute of augmentation functions: name of the kernel's step
_WITH_ARRAYS = ("fill_value", "interp_type", "shape")


def step(kind: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorator that marks a function as a step of `_auto_aug.augment`."""

    def mark(function: Callable[..., Any]) -> Callable[..., Any]:
        setattr(function, _STEP, kind)
        return function

    return mark


def augment(data: DataNode, **kwargs: Any) -> DataNode:
    """Adds a call of the operator."""
    out: DataNode = trace.call(REGISTRY["_auto_aug.augment"], (data,), kwargs)
    return out


def apply(kind: str, data: DataNode, parameter: Any, **kwargs: Any) -> DataNode:
    """Applies one step to all samples, with parameters per sample, which are read on the CPU."""
    if isinstance(parameter, DataNode):
        parameter = origin(parameter) if parameter.device == "gpu" else parameter
    elif parameter is not None:
        parameter = np.asarray(parameter, "f8").reshape(-1).tolist()
    return augment(data, kind=kind, parameter=parameter if parameter is not None else [0.0], **kwargs)


def converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Converts a function so that its conditionals work on data."""
    if hasattr(function, _STEP):
        return function
    from ...graph import conditionals  # imports the parser only if needed

    try:
        made: Callable[..., Any] = conditionals.converted_call(function)
    except conditionals.NotConvertible:
        return function
    return made


def rows(aug: Augmentation, bins: Sequence[int] | None, num_magnitude_bins: int | None, kwargs: dict[str, Any]) -> Any:
    """Steps (bins, 2, FLOATS) for bins (None: all) and signs; None if the augmentation is not a native step."""
    kind = getattr(aug.op, _STEP, None)
    if kind is None or not kwargs.get("rotate_keep_size", True) or type(aug).__call__ is not _call_of_base():
        return None
    count = num_magnitude_bins if bins is None else len(bins)
    if count is None:
        return None
    magnitudes = aug.magnitudes(num_magnitude_bins)
    if magnitudes is None:
        return np.broadcast_to(rows_of(kind, None), (count, 2, FLOATS))
    chosen = magnitudes if bins is None else magnitudes[list(bins)]
    parameters = aug.parameters(chosen)
    negated = aug.parameters(-chosen) if aug.randomly_negate else parameters
    try:
        return np.concatenate([rows_of(kind, parameters), rows_of(kind, negated)], axis=1)
    except (ValueError, TypeError):  # values not supported by the kernel
        return None


def _call_of_base() -> Any:
    from ._augmentation import Augmentation

    return Augmentation.__call__


def table(
    augmentations: Iterable[Augmentation], bins: Sequence[int] | None, num_magnitude_bins: int, kwargs: dict[str, Any]
) -> np.ndarray | None:
    """Steps (augmentations, bins, 2, FLOATS); None unless all augmentations are native steps."""
    found = []
    for aug in augmentations:
        aug.check_kwargs(kwargs)
        found.append(rows(aug, bins, num_magnitude_bins, kwargs))
        if found[-1] is None:
            return None
    return np.stack(found)


def accepted(augmentations: Iterable[Augmentation], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The operator's arguments, selected from those for augmentations."""
    from ._args import filter_extra_accepted_kwargs

    taken = {n for aug in augmentations for n in filter_extra_accepted_kwargs(aug.op, kwargs, 2)}
    given = {"fill_value": 128} | {k: v for k, v in kwargs.items() if k in _WITH_ARRAYS and k in taken}
    return given
