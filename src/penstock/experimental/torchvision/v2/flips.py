# SPDX-License-Identifier: Apache-2.0
"""Flips images."""

from __future__ import annotations

from typing import Any, Literal

from .... import fn
from ._checks import probability
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator


class _Probability(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, p: Any, **kwargs: Any) -> None:
        probability(p)


class RandomFlip(Operator):
    """Flips each image with the probability `p`.

    Parameters
    ----------
    p
        Probability, in [0.0, 1.0].
    horizontal
        Whether to flip left and right, otherwise top and bottom.
    device
        "cpu" or "gpu".

    Raises
    ------
    ValueError
        If `p` is not a probability.

    >>> import torch
    >>> RandomFlip(p=1.0, horizontal=False)(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[3, 4],
             [1, 2]]])
    """

    arg_rules = (_Probability,)

    def __init__(self, p: float = 0.5, horizontal: bool = True, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(device, p=p)
        self.p, self.horizontal = float(p), bool(horizontal)

    def _apply(self, picture: Picture) -> Picture:
        if self.p == 0:
            return picture
        flip = 1 if self.p == 1 else fn.random.coin_flip(probability=self.p)
        across, along = (flip, 0) if self.horizontal else (0, flip)
        return picture.made(fn.flip(picture.data, horizontal=across, vertical=along))


class RandomHorizontalFlip(RandomFlip):
    """Flips each image left to right with the probability `p`.

    Parameters
    ----------
    p
        Probability, in [0.0, 1.0].
    device
        "cpu" or "gpu".

    >>> import torch
    >>> RandomHorizontalFlip(p=1.0)(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[2, 1],
             [4, 3]]])
    """

    def __init__(self, p: float = 0.5, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(p, True, device)


class RandomVerticalFlip(RandomFlip):
    """Flips each image upside down with the probability `p`.

    Parameters
    ----------
    p
        Probability, in [0.0, 1.0].
    device
        "cpu" or "gpu".

    >>> import torch
    >>> RandomVerticalFlip(p=1.0)(torch.tensor([[[1, 2], [3, 4]]]))
    tensor([[[3, 4],
             [1, 2]]])
    """

    def __init__(self, p: float = 0.5, device: Literal["cpu", "gpu"] = "cpu"):
        super().__init__(p, False, device)
