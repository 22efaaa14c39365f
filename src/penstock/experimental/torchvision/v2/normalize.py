# SPDX-License-Identifier: Apache-2.0
"""Normalises images to a mean of 0 and a standard deviation of 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from .... import fn
from ....types import DALIDataType
from ._checks import numbers
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator, get_HWC_from_layout_pipeline

FLOAT32 = np.dtype("f4")
TYPES = ("uint8", "uint16", "int16", "int32", "float16", "float32")
_ACCEPTED = "a sequence of numbers, one for all channels or one per channel"


class _MeanAndStd(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, mean: Any, std: Any, inplace: Any, **kwargs: Any) -> None:
        found = {name: numbers(value, name, _ACCEPTED) for name, value in (("mean", mean), ("std", std))}
        for name, values in found.items():
            if not values:
                raise ValueError(f"{name} takes {_ACCEPTED}; got none")
        if 0.0 in found["std"]:
            raise ValueError(f"std takes numbers that are not 0, got {std!r}")
        lengths = {len(values) for values in found.values()} - {1}
        if len(lengths) > 1:
            raise ValueError(
                "mean and std need one number for all channels or the same number of values; got "
                f"{len(found['mean'])} and {len(found['std'])}"
            )
        if inplace:
            raise NotImplementedError("inplace=True is not supported: the input is never written to; leave it out")


class Normalize(Operator):
    """Computes (x - mean) / std for each channel, in float32.

    Values are not scaled before: for uint8, `mean` and `std` are in [0, 255]. Elements are uint8, int16, uint16, int32,
    float16 or float32.

    Parameters
    ----------
    mean, std
        A sequence with one number per channel, or one for all. `std` must not contain 0.
    inplace
        Only False is supported.
    device
        "cpu" or "gpu".

    Raises
    ------
    TypeError, ValueError
        For other arguments, or arguments that do not match the number of channels.
    NotImplementedError
        For `inplace=True`.

    >>> import torch
    >>> Normalize(mean=[10.0], std=[2.0])(torch.tensor([[[10, 14]]], dtype=torch.uint8))
    tensor([[[0., 2.]]])
    """

    arg_rules = (_MeanAndStd,)
    preprocess_data = get_HWC_from_layout_pipeline

    def __init__(
        self,
        mean: Sequence[float],
        std: Sequence[float],
        inplace: bool = False,
        device: Literal["cpu", "gpu"] = "cpu",
    ):
        super().__init__(device, mean=mean, std=std, inplace=inplace)
        self.mean, self.std = numbers(mean, "mean", _ACCEPTED), numbers(std, "std", _ACCEPTED)

    def _apply(self, picture: Picture) -> Picture:
        picture.check_type("Normalize", TYPES)
        for name, values in (("mean", self.mean), ("std", self.std)):
            if len(values) not in (1, picture.channels):
                raise ValueError(
                    f"{name} has {len(values)} numbers and the pictures have {picture.channels} channels; give one "
                    "number for all channels, or one per channel"
                )
        # The same pass also orders the axes.
        data = fn.crop_mirror_normalize(
            picture.data,
            mean=list(self.mean),
            std=list(self.std),
            dtype=DALIDataType.FLOAT,
            output_layout=picture.wanted,
        )
        return picture.made(data, layout=picture.wanted, dtype=FLOAT32)
