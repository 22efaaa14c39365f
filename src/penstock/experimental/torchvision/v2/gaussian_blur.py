# SPDX-License-Identifier: Apache-2.0
"""Blurs images."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, Literal

from .... import fn
from ._checks import is_sequence, numbers
from ._picture import Picture
from .operator import ArgumentValidateRule, Operator


def kernel_of(kernel_size: Any) -> tuple[int, int]:
    """Height and width."""
    accepted = "a positive odd integer, or a sequence of one or two: (height, width)"
    values = tuple(kernel_size) if is_sequence(kernel_size) else (kernel_size,)
    if len(values) not in (1, 2) or not all(isinstance(v, Integral) and v > 0 and v % 2 for v in values):
        raise ValueError(f"kernel_size takes {accepted}; got {kernel_size!r}")
    return int(values[0]), int(values[-1])


def sigma_of(sigma: Any) -> tuple[float, float]:
    """(min, max)"""
    accepted = "a positive number, or a sequence of two, (min, max)"
    if not isinstance(sigma, Real) and not is_sequence(sigma):
        raise ValueError(f"sigma takes {accepted}; got {sigma!r}")
    values = numbers(sigma if is_sequence(sigma) else (sigma, sigma), "sigma", accepted)
    if len(values) != 2 or not 0 < values[0] <= values[1]:
        raise ValueError(f"sigma takes {accepted}; got {sigma!r}")
    return values[0], values[1]


class _KernelAndSigma(ArgumentValidateRule):
    @classmethod
    def verify(cls, *, kernel_size: Any, sigma: Any, **kwargs: Any) -> None:
        kernel_of(kernel_size)
        sigma_of(sigma)


class GaussianBlur(Operator):
    """Blurs images with a Gaussian; the border is mirrored without the outermost pixel.

    Accepts any type but bool.

    Parameters
    ----------
    kernel_size
        Size of the window: (height, width), or one number for both; positive and odd.
    sigma
        Standard deviation in pixels; or (min, max), the range from which it is drawn for each image. Positive.
    device
        "cpu" or "gpu".
    seed
        Seed of the random numbers. If negative, derived from the seed of the `Compose`.

    Raises
    ------
    ValueError
        For other arguments.

    >>> import torch
    >>> GaussianBlur((1, 3), sigma=1.0)(torch.tensor([[[0.0, 0.0, 9.0, 0.0, 0.0]]])).round(decimals=2)
    tensor([[[0.0000, 2.4700, 4.0700, 2.4700, 0.0000]]])
    """

    arg_rules = (_KernelAndSigma,)

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        sigma: int | float | Sequence[float] = (0.1, 2.0),
        device: Literal["cpu", "gpu"] = "cpu",
        seed: int = -1,
    ):
        super().__init__(device, kernel_size=kernel_size, sigma=sigma)
        if not isinstance(seed, Integral):
            raise TypeError(f"seed must be an integer, got {seed!r}")
        self.kernel_size, self.sigma, self.seed = kernel_of(kernel_size), sigma_of(sigma), int(seed)

    def _apply(self, picture: Picture) -> Picture:
        if picture.dtype == bool:
            raise ValueError("GaussianBlur takes pictures of any type but bool. Convert them first")
        low, high = self.sigma
        sigma = low if low == high else fn.random.uniform(range=[low, high], seed=self.seed)
        return picture.made(fn.gaussian_blur(picture.data, window_size=list(self.kernel_size), sigma=sigma))
