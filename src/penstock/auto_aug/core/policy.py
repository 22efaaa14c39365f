# SPDX-License-Identifier: Apache-2.0
"""Policies of AutoAugment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from ._augmentation import Augmentation

SubPolicy = Sequence[tuple[Augmentation, float, "int | None"]]


class Policy:
    """A policy as in the AutoAugment paper (Cubuk et al., https://arxiv.org/abs/1805.09501).

    `sub_policies` are sequences of (augmentation, probability, magnitude bin); the bin is None for augmentations
    without magnitudes. For each sample, one sub-policy is drawn, and each of its augmentations is applied, in order,
    with its probability. Ranges of magnitudes are divided into `num_magnitude_bins`. `name` is for printing.
    """

    def __init__(self, name: str, num_magnitude_bins: int, sub_policies: Sequence[SubPolicy]):
        self.name, self.num_magnitude_bins = name, num_magnitude_bins
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise ValueError(f"`num_magnitude_bins` must be a positive integer, got {num_magnitude_bins!r}")
        if not isinstance(sub_policies, (list, tuple)):
            raise TypeError(f"`sub_policies` must be a list or tuple of sub policies, got {type(sub_policies)}")
        for sub_policy in sub_policies:
            if not isinstance(sub_policy, (list, tuple)):
                raise TypeError(f"each sub policy must be a list or tuple, got {sub_policy!r}")
            for described in sub_policy:
                self._check(described)
        self.sub_policies = _with_unique_names(sub_policies)

    def _check(self, described: Any) -> None:
        if not isinstance(described, (list, tuple)) or len(described) != 3:
            raise TypeError(
                f"each operation of a sub policy is a triple (augmentation, probability, magnitude); got {described!r}"
            )
        aug, p, bin_ = described
        if not isinstance(aug, Augmentation):
            raise TypeError(
                f"each augmentation in sub policies must be an instance of Augmentation, got {aug!r}; decorate the "
                "function with `@augmentation`"
            )
        if not isinstance(p, (float, int)) or not 0 <= p <= 1:
            raise ValueError(f"the probability of `{aug.name}` must be a number from `[0, 1]`, got {p!r}")
        if p == 0:
            warnings.warn(f"`{aug.name}` in policy `{self.name}` is used with probability 0", stacklevel=4)
        if bin_ is None:
            if aug.mag_range is not None:
                raise ValueError(
                    f"`{aug.name}` has a `mag_range`, so it requires a magnitude bin; policy `{self.name}` has None"
                )
            return
        if aug.mag_range is None:
            warnings.warn(
                f"the magnitude bin {bin_} of `{aug.name}` in policy `{self.name}` will be ignored: it has no "
                "`mag_range`; None instead of the bin silences this",
                stacklevel=4,
            )
        if not isinstance(bin_, int) or not 0 <= bin_ < self.num_magnitude_bins:
            raise ValueError(
                f"the magnitude of `{aug.name}` must be an integer from `[0, {self.num_magnitude_bins - 1}]`, "
                f"got {bin_!r}"
            )

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations by name, in alphabetical order."""
        found = {aug for sub_policy in self.sub_policies for aug, _, _ in sub_policy}
        return {aug.name: aug for aug in sorted(found, key=lambda aug: aug.name)}

    def __repr__(self) -> str:
        policies = ",\n\t".join(repr([(aug.name, p, bin_) for aug, p, bin_ in s]) for s in self.sub_policies)
        names = ",\n\t".join(f"{n!r}: {aug!r}" for n, aug in self.augmentations.items())
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins!r}, "
            f"sub_policies=[{policies and chr(10) + chr(9)}{policies}], "
            f"augmentations={{{names and chr(10) + chr(9)}{names}}})"
        )


def _with_unique_names(sub_policies: Sequence[SubPolicy]) -> tuple[tuple[Any, ...], ...]:
    """Numbers augmentations that share a name, in the order of appearance."""
    order = list(dict.fromkeys(aug for sub_policy in sub_policies for aug, _, _ in sub_policy))
    if len({aug.name for aug in order}) == len(order):
        return tuple(tuple(s) for s in sub_policies)
    digits = len(str(len(order) - 1))
    renamed = {aug: aug.augmentation(name=f"{i:0{digits}}__{aug.name}") for i, aug in enumerate(order)}
    return tuple(tuple((renamed[aug], p, bin_) for aug, p, bin_ in s) for s in sub_policies)
