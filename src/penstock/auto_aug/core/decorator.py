# SPDX-License-Identifier: Apache-2.0
"""The decorator that turns functions into augmentations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

import numpy as np

from ...data_node import DataNode
from ._augmentation import Augmentation


@overload
def augmentation(
    function: Callable[..., DataNode],
    *,
    mag_range: tuple[float, float] | np.ndarray | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Augmentation: ...
@overload
def augmentation(
    function: None = None,
    *,
    mag_range: tuple[float, float] | np.ndarray | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Callable[[Callable[..., DataNode]], Augmentation]: ...
def augmentation(
    function: Callable[..., DataNode] | None = None,
    *,
    mag_range: tuple[float, float] | np.ndarray | None = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Turns a function of a batch and a parameter into an augmentation, for policies and suites of augmentations.

    The augmentation takes `magnitude_bin` and `num_magnitude_bins` instead of the parameter; see `Augmentation`.

    * `mag_range`: minimum and maximum magnitude, between which bins are evenly spaced, or an array of all magnitudes.
      By default the function gets None as the parameter.
    * `randomly_negate`: whether magnitudes get a random sign for each sample.
    * `mag_to_param`: converts a magnitude to the parameter, an array. By default the magnitude itself. It is called
      when the pipeline is defined, and must return the same type and shape for all magnitudes.
    * `param_device`: device of the parameter: "cpu" (the default), "gpu", or "auto" for that of the data.
    * `name`: by default that of the function.

    >>> from penstock import fn, pipeline_def, types
    >>> from penstock.auto_aug.core import augmentation
    >>> import numpy as np
    >>> @augmentation(mag_range=(0, 100))
    ... def lighter(data, value):
    ...     return fn.cast(data + value, dtype=types.UINT8)
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[[1, 2, 3]]]), layout="HWC")
    ...     return lighter(x, magnitude_bin=5, num_magnitude_bins=11)
    >>> pipe().run()[0].at(0).tolist()
    [[[51, 52, 53]]]
    """

    def decorate(function: Callable[..., DataNode]) -> Augmentation:
        if not callable(function):
            raise TypeError(f"`@augmentation` decorates a function; {function!r} is not callable")
        if isinstance(function, Augmentation):
            raise TypeError(
                f"`@augmentation` was applied to already decorated Augmentation `{function.name}`; use "
                f"`{function.name}.augmentation(...)` for one with other settings, or decorate `{function.name}.op`"
            )
        return (augmentation_cls or Augmentation)(
            function,
            mag_range=mag_range,
            randomly_negate=randomly_negate,
            mag_to_param=mag_to_param,
            param_device=param_device,
            name=name,
        )

    return decorate if function is None else decorate(function)
