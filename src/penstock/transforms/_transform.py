# SPDX-License-Identifier: Apache-2.0
"""What all transforms have in common, and those that are made of others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from PIL import Image
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._picture import Picture
from .functional._annotations import is_picture, kind_of, like, plain
from .functional.geometry import as_picture


class Transform(torch.nn.Module):
    """Base of all transforms, including your own: override `transform`, and `make_params` if it is random.

    A transform takes an image, or a sample of any structure (tuples, lists, dictionaries) that contains images: all
    Pillow images, and images and videos of `torchvision.tv_tensors`, or if there are none, the first tensor. All get
    the same parameters, including masks, boxes and key points if pixels are moved. Everything else is returned
    unchanged. Random numbers are drawn from PyTorch's generator in the same way as by torchvision.
    """

    views = False  # `transform` takes and gives a `Picture`, too
    reads = True  # the pixels, not only where they are
    moves = True  # pixels, so that masks, boxes and key points go with them

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        """Returns the parameters for one call, given the images of the sample."""
        return {}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        """Transforms one image."""
        raise NotImplementedError(f"{type(self).__name__} has no `transform`, which must be overridden")

    def applies(self) -> bool:
        """Whether it does anything this time."""
        return True

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        if type(x) is not torch.Tensor and not isinstance(x, (Image.Image, Picture)):
            return self._of_sample(x)
        return self.transform(x, self.make_params([x])) if self.applies() else x

    def _of_sample(self, sample: Any) -> Any:
        flat, form = tree_flatten(sample)
        if not self.applies():
            return sample
        chosen = pictures_of(flat)
        if self.moves:
            chosen += [i for i, x in enumerate(flat) if kind_of(x) and not is_picture(x)]
        if not chosen:
            if len(flat) == 1 and not kind_of(flat[0]):  # not a sample, but what this transform may make a picture of
                return self.transform(sample, self.make_params([sample]))
            return sample
        params = self.make_params([flat[i] for i in chosen])
        for i in chosen:
            x = flat[i]
            if self.moves or not is_picture(x):
                flat[i] = self.transform(x, params)
                continue
            made = self.transform(plain(x), params)
            flat[i] = like(made, x) if isinstance(made, torch.Tensor) else made
        return tree_unflatten(flat, form)

    def extra_repr(self) -> str:
        shown = {k: v for k, v in vars(self).items() if not k.startswith("_") and k != "training"}
        return ", ".join(f"{k}={v}" for k, v in shown.items() if isinstance(v, (bool, int, float, str, tuple, list)))


def pictures_of(flat: Sequence[Any]) -> list[int]:
    """Which parts of a sample are pictures: see Transform."""
    images = [i for i, x in enumerate(flat) if isinstance(x, (Image.Image, Picture)) or is_picture(x)]
    return images or [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor) and not kind_of(x)][:1]


class RandomTransform(Transform):
    """Base of transforms that are applied with the probability `p`."""

    def __init__(self, p: float = 0.5):
        super().__init__()
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"p is a probability in [0, 1]; got {p}")
        self.p = p

    def applies(self) -> bool:
        return float(torch.rand(1)) < self.p


def _called(transform: Callable, x: Any) -> Any:
    """On a view where the transform can."""
    if not getattr(transform, "views", False) and isinstance(x, Picture):
        x = x.given_back()
    return transform(x)


class Compose(Transform):
    """Applies transforms one after the other. Native code runs consecutive transforms without creating images in
    between: a crop after a resize computes only what it keeps, and the conversion to floats reads flipped and cropped
    pixels in place.

    >>> from penstock import transforms
    >>> t = Compose([transforms.Resize(32), transforms.CenterCrop(24), transforms.ToTensor()])
    >>> t(Image.new("RGB", (64, 48))).shape
    torch.Size([3, 24, 24])
    """

    views = True

    def __init__(self, transforms: Sequence[Callable]):
        super().__init__()
        if not isinstance(transforms, Sequence) or isinstance(transforms, str):
            raise TypeError(f"Compose takes a sequence of callables; got {type(transforms).__name__}")
        if not transforms:
            raise ValueError("Compose takes at least one transform; got none")
        self.transforms = transforms
        self._steps = joined(transforms)

    def forward(self, *inputs: Any) -> Any:
        x: Any = inputs if len(inputs) > 1 else inputs[0]
        given: Any = None
        view: Any = None
        is_view = isinstance(x, Picture)
        if (type(x) is torch.Tensor or isinstance(x, Image.Image)) and self._gains():
            given, view = x, as_picture(x)
            x = view
        for step in self._steps:
            x = _called(step, x)
        if x is view and given is not None:
            return given  # nothing was done
        return x.given_back() if isinstance(x, Picture) and not is_view else x

    def _gains(self) -> bool:
        """Whether a view is of use: something beyond flips and crops reads it."""
        for step in self._steps:
            if not getattr(step, "views", False):
                return False
            if getattr(step, "reads", True):
                return len(self._steps) > 1
        return False

    def extra_repr(self) -> str:
        return "\n".join(f"    {t}" for t in self.transforms)


def joined(transforms: Sequence[Callable]) -> list[Callable]:
    """The transforms, with those that native code does together made one."""
    from .convert import join

    return join(list(transforms))


class RandomApply(Transform):
    """Applies a list of transforms, or one, with the probability `p`."""

    def __init__(self, transforms: Any, p: float = 0.5):
        super().__init__()
        if not isinstance(transforms, (Sequence, torch.nn.ModuleList)):
            raise TypeError(f"RandomApply takes a sequence of callables; got {type(transforms).__name__}")
        if not 0.0 <= p <= 1.0:
            raise ValueError(f"p is a probability in [0, 1]; got {p}")
        self.transforms, self.p = transforms, p

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        if float(torch.rand(1)) >= self.p:
            return x
        for transform in self.transforms:
            x = transform(x)
        return x


class RandomChoice(Transform):
    """Applies one of several transforms, with the probabilities `p` (by default equal)."""

    def __init__(self, transforms: Sequence[Callable], p: Sequence[float] | None = None):
        super().__init__()
        if not isinstance(transforms, Sequence):
            raise TypeError(f"RandomChoice takes a sequence of callables; got {type(transforms).__name__}")
        weights = [1.0] * len(transforms) if p is None else list(p)
        if len(weights) != len(transforms):
            raise ValueError(f"p has {len(weights)} values for {len(transforms)} transforms")
        self.transforms, self.p = transforms, [w / sum(weights) for w in weights]

    def forward(self, *inputs: Any) -> Any:
        return self.transforms[int(torch.multinomial(torch.tensor(self.p), 1))](*inputs)


class RandomOrder(Transform):
    """Applies transforms in a random order."""

    def __init__(self, transforms: Sequence[Callable]):
        super().__init__()
        if not isinstance(transforms, Sequence):
            raise TypeError(f"RandomOrder takes a sequence of callables; got {type(transforms).__name__}")
        self.transforms = transforms

    def forward(self, *inputs: Any) -> Any:
        x = inputs if len(inputs) > 1 else inputs[0]
        for i in torch.randperm(len(self.transforms)):
            x = self.transforms[int(i)](x)
        return x


class Identity(Transform):
    """Returns its input unchanged."""

    views, reads = True, False

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return inpt


class Lambda(Transform):
    """Calls a function with each image; with `types`, only with instances of these."""

    def __init__(self, lambd: Callable[[Any], Any], *types: type):
        super().__init__()
        self.lambd, self.types = lambd, types or (object,)

    def forward(self, *inputs: Any) -> Any:
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        return tree_unflatten([self.lambd(x) if isinstance(x, self.types) else x for x in flat], form)
