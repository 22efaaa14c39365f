# SPDX-License-Identifier: Apache-2.0
"""Transforms that mix the images of a batch, and their labels."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import one_hot
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._transform import Transform, pictures_of
from .functional.geometry import get_size


def _second(sample: Any) -> Any:
    if isinstance(sample, dict):
        for name in ("label", "labels", "target", "targets"):
            for key in sample:
                if str(key).lower() == name:
                    return sample[key]
    elif isinstance(sample, (tuple, list)) and len(sample) > 1:
        return sample[1]
    raise ValueError("no labels: they are the second of the arguments, or named by labels_getter")


class _Mixing(Transform):
    """Base: each image is mixed with the previous one, by a share drawn from the distribution Beta(alpha, alpha)."""

    def __init__(self, *, alpha: float = 1.0, num_classes: int | None = None, labels_getter: Any = "default"):
        super().__init__()
        self.alpha, self.num_classes = float(alpha), num_classes
        self._share = torch.distributions.Beta(torch.tensor([self.alpha]), torch.tensor([self.alpha]))
        self._labels: Callable[[Any], Any] = _second if labels_getter == "default" else labels_getter

    def forward(self, *inputs: Any) -> Any:
        sample = inputs if len(inputs) > 1 else inputs[0]
        labels = self._labels(sample)
        if not isinstance(labels, torch.Tensor) or labels.ndim not in (1, 2):
            got = f"of shape {tuple(labels.shape)}" if isinstance(labels, torch.Tensor) else type(labels).__name__
            raise ValueError(f"labels are a tensor (n,) of classes or (n, classes) of probabilities; got {got}")
        if labels.ndim == 1 and self.num_classes is None:
            raise ValueError("labels that are classes need num_classes")
        if labels.ndim == 2 and self.num_classes not in (None, labels.shape[1]):
            raise ValueError(f"labels have {labels.shape[1]} classes; num_classes is {self.num_classes}")
        flat, form = tree_flatten(sample)
        chosen = [i for i in pictures_of(flat) if flat[i] is not labels]
        for i in chosen:
            if not isinstance(flat[i], torch.Tensor) or flat[i].ndim != 4 or len(flat[i]) != len(labels):
                got = (
                    f"of shape {tuple(flat[i].shape)}" if isinstance(flat[i], torch.Tensor) else type(flat[i]).__name__
                )
                raise ValueError(f"pictures are a tensor (n, C, H, W) with n = {len(labels)} labels; got {got}")
        params = self.make_params([flat[i] for i in chosen])
        for i in chosen:
            flat[i] = self.transform(flat[i], params)
        at = next(i for i, x in enumerate(flat) if x is labels)
        flat[at] = self._mixed_labels(labels, params["label_share"])
        return tree_unflatten(flat, form)

    def _mixed_labels(self, labels: torch.Tensor, share: float) -> torch.Tensor:
        if labels.ndim == 1:
            labels = one_hot(labels, num_classes=self.num_classes or -1)
        return _mix(labels if labels.is_floating_point() else labels.float(), share)


def _mix(x: torch.Tensor, share: float) -> torch.Tensor:
    return x.roll(1, 0).mul_(1.0 - share).add_(x, alpha=share)


class MixUp(_Mixing):
    """Returns the weighted sum of each image and the previous one."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        share = float(self._share.sample(()))
        return {"share": share, "label_share": share}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return _mix(inpt, params["share"])


class CutMix(_Mixing):
    """Pastes a random rectangle of the previous image into each image."""

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        share = float(self._share.sample(()))
        height, width = get_size(flat_inputs[0])
        x, y = int(torch.randint(width, size=(1,))), int(torch.randint(height, size=(1,)))
        half = 0.5 * math.sqrt(1.0 - share)
        half_width, half_height = int(half * width), int(half * height)
        left, right = max(x - half_width, 0), min(x + half_width, width)
        top, bottom = max(y - half_height, 0), min(y + half_height, height)
        kept = float(1.0 - (right - left) * (bottom - top) / (width * height))
        return {"box": (top, bottom, left, right), "label_share": kept}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        top, bottom, left, right = params["box"]
        out = inpt.clone()
        out[..., top:bottom, left:right] = inpt[..., top:bottom, left:right].roll(1, 0)
        return out
