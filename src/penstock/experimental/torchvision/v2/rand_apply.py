# SPDX-License-Identifier: Apache-2.0
"""Applies transforms to some images only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from .... import fn
from ....graph.branching import if_else
from ....types import DALIDataType
from ._checks import probability
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator


class _Probability(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, p: Any, **kwargs: Any) -> None:
        probability(p)


class RandomApply(Operator):
    """Applies a list of transforms to each image with the probability `p`: all of them, or none.

    They must keep the type of the elements and the number of channels, unless `p` is 0 or 1. If the images of a batch
    then have different sizes, they can't become one tensor.

    Parameters
    ----------
    op_list
        Transforms.
    p
        Probability, in [0.0, 1.0].
    device
        "cpu" or "gpu"; has no effect: each of the transforms has its own.

    Raises
    ------
    TypeError
        If `op_list` is not a list of transforms.
    ValueError
        If `p` is not a probability.

    >>> import torch
    >>> from penstock.experimental.torchvision import RandomVerticalFlip
    >>> flips = RandomApply([RandomVerticalFlip(1.0)], p=0.5)
    >>> sorted({flips(torch.tensor([[[1], [2]]])).flatten()[0].item() for _ in range(50)})
    [1, 2]
    """

    arg_rules = (_Probability,)

    def __init__(self, op_list: Sequence[Callable[..., Any]], p: float = 0.5, device: Literal["cpu", "gpu"] = "cpu"):
        from .compose import transforms_of

        super().__init__(device, p=p)
        self.op_list, self.p = transforms_of(op_list, "RandomApply"), float(p)

    def _invoke(self, picture: Picture) -> Picture:
        return self._apply(picture)

    def _apply(self, picture: Picture) -> Picture:
        if self.p == 0 or not self.op_list:
            return picture
        if self.p == 1:
            return self._all(picture)
        made: list[Picture] = []

        def applied() -> Any:
            made.append(self._all(picture).as_layout(picture.layout).on(picture.data.device))
            return made[0].data

        chosen = fn.random.coin_flip(probability=self.p, dtype=DALIDataType.BOOL)
        data = if_else(chosen, applied, lambda: picture.data)
        for what in ("channels", "dtype"):
            before, after = getattr(picture, what), getattr(made[0], what)
            if before != after:
                raise ValueError(
                    f"RandomApply: the transforms change the {what} of some pictures from {before} to {after}; "
                    "pictures of a batch need the same. Use p=1.0, or put the transform that does so outside of it"
                )
        return picture.made(data)

    def _all(self, picture: Picture) -> Picture:
        for op in self.op_list:
            picture = op._invoke(picture)
        return picture
