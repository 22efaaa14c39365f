# SPDX-License-Identifier: Apache-2.0
"""Policies of random augmentations: AutoAugment (Cubuk et al., 2019), RandAugment (Cubuk et al., 2020),
TrivialAugmentWide (Mueller and Hutter, 2021) and AugMix (Hendrycks et al., 2020), as torchvision has them."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import Enum
from typing import Any

import torch
from PIL import Image
from torch.utils._pytree import tree_flatten, tree_unflatten

from ._transform import Transform, pictures_of
from .functional import color, warp
from .functional._annotations import is_picture, kind_of, like, plain
from .functional.convert import largest, pil_to_tensor, to_pil_image
from .functional.geometry import InterpolationMode, get_size, name_of
from .geometry import fill_for


class AutoAugmentPolicy(Enum):
    """The data set for which a policy of AutoAugment was found."""

    IMAGENET = "imagenet"
    CIFAR10 = "cifar10"
    SVHN = "svhn"


# Each has the strengths for a number of steps and a size, and whether a sign is drawn.
_Strengths = tuple[Callable[[int, int, int], Any], bool]


def _up_to(most: float) -> _Strengths:
    return lambda steps, height, width: torch.linspace(0.0, most, steps), True


def _bits(first: int, fewer: int) -> _Strengths:
    return lambda steps, height, width: (first - torch.arange(steps) / ((steps - 1) / fewer)).round().int(), False


_NONE: _Strengths = (lambda steps, height, width: None, False)
_SOLARIZE: _Strengths = (lambda steps, height, width: torch.linspace(1.0, 0.0, steps), False)


def _moves(share: float) -> dict[str, _Strengths]:
    return {
        "TranslateX": (lambda steps, height, width: torch.linspace(0.0, share * width, steps), True),
        "TranslateY": (lambda steps, height, width: torch.linspace(0.0, share * height, steps), True),
    }


def _colors(most: float) -> dict[str, _Strengths]:
    return {name: _up_to(most) for name in ("Brightness", "Color", "Contrast", "Sharpness")}


def _space(shear: float, moves: dict[str, _Strengths], angle: float, colors: float, fewer_bits: int) -> dict:
    return {
        "Identity": _NONE,
        "ShearX": _up_to(shear),
        "ShearY": _up_to(shear),
        **moves,
        "Rotate": _up_to(angle),
        **_colors(colors),
        "Posterize": _bits(8, fewer_bits),
        "Solarize": _SOLARIZE,
        "AutoContrast": _NONE,
        "Equalize": _NONE,
    }


_USUAL = _space(0.3, _moves(150 / 331), 30.0, 0.9, 4)
_WIDE = _space(0.99, {"TranslateX": _up_to(32.0), "TranslateY": _up_to(32.0)}, 135.0, 0.99, 6)
_MIX = {
    "ShearX": _up_to(0.3),
    "ShearY": _up_to(0.3),
    "TranslateX": (lambda steps, height, width: torch.linspace(0.0, width / 3, steps), True),
    "TranslateY": (lambda steps, height, width: torch.linspace(0.0, height / 3, steps), True),
    "Rotate": _up_to(30.0),
    "Posterize": _bits(4, 4),
    "Solarize": _SOLARIZE,
    "AutoContrast": _NONE,
    "Equalize": _NONE,
}

# Two steps a line: name, probability in tenths, strength (- where there is none).
_POLICIES = {
    "imagenet": """
        Posterize 4 8 Rotate 6 9;     Solarize 6 5 AutoContrast 6 -; Equalize 8 - Equalize 6 -;
        Posterize 6 7 Posterize 6 6;  Equalize 4 - Solarize 2 4;     Equalize 4 - Rotate 8 8;
        Solarize 6 3 Equalize 6 -;    Posterize 8 5 Equalize 10 -;   Rotate 2 3 Solarize 6 8;
        Equalize 6 - Posterize 4 6;   Rotate 8 8 Color 4 0;          Rotate 4 9 Equalize 6 -;
        Equalize 0 - Equalize 8 -;    Invert 6 - Equalize 10 -;      Color 6 4 Contrast 10 8;
        Rotate 8 8 Color 10 2;        Color 8 8 Solarize 8 7;        Sharpness 4 7 Invert 6 -;
        ShearX 6 5 Equalize 10 -;     Color 4 0 Equalize 6 -;        Equalize 4 - Solarize 2 4;
        Solarize 6 5 AutoContrast 6 -; Invert 6 - Equalize 10 -;     Color 6 4 Contrast 10 8;
        Equalize 8 - Equalize 6 -""",
    "cifar10": """
        Invert 1 - Contrast 2 6;      Rotate 7 2 TranslateX 3 9;     Sharpness 8 1 Sharpness 9 3;
        ShearY 5 8 TranslateY 7 9;    AutoContrast 5 - Equalize 9 -; ShearY 2 7 Posterize 3 7;
        Color 4 3 Brightness 6 7;     Sharpness 3 9 Brightness 7 9;  Equalize 6 - Equalize 5 -;
        Contrast 6 7 Sharpness 6 5;   Color 7 7 TranslateX 5 8;      Equalize 3 - AutoContrast 4 -;
        TranslateY 4 3 Sharpness 2 6; Brightness 9 6 Color 2 8;      Solarize 5 2 Invert 0 -;
        Equalize 2 - AutoContrast 6 -; Equalize 2 - Equalize 6 -;    Color 9 9 Equalize 6 -;
        AutoContrast 8 - Solarize 2 8; Brightness 1 3 Color 7 0;     Solarize 4 5 AutoContrast 9 -;
        TranslateY 9 9 TranslateY 7 9; AutoContrast 9 - Solarize 8 3; Equalize 8 - Invert 1 -;
        TranslateY 7 9 AutoContrast 9 -""",
    "svhn": """
        ShearX 9 4 Invert 2 -;        ShearY 9 8 Invert 7 -;         Equalize 6 - Solarize 6 6;
        Invert 9 - Equalize 6 -;      Equalize 6 - Rotate 9 3;       ShearX 9 4 AutoContrast 8 -;
        ShearY 9 8 Invert 4 -;        ShearY 9 5 Solarize 2 6;       Invert 9 - AutoContrast 8 -;
        Equalize 6 - Rotate 9 3;      ShearX 9 4 Solarize 3 3;       ShearY 8 8 Invert 7 -;
        Equalize 9 - TranslateY 6 6;  Invert 9 - Equalize 6 -;       Contrast 3 3 Rotate 8 4;
        Invert 8 - TranslateY 0 2;    ShearY 7 6 Solarize 4 8;       Invert 6 - Rotate 8 4;
        ShearY 3 7 TranslateX 9 3;    ShearX 1 6 Invert 6 -;         Solarize 7 2 TranslateY 6 7;
        ShearY 8 4 Invert 8 -;        ShearX 7 9 TranslateY 8 3;     ShearY 8 5 AutoContrast 7 -;
        ShearX 7 2 Invert 1 -""",
}


def _policy(name: str) -> list[list[tuple[str, float, int]]]:
    made = []
    for line in _POLICIES[name].split(";"):
        words = line.split()
        steps = [words[i : i + 3] for i in (0, 3)]
        made.append([(step, int(p) / 10, 0 if at == "-" else int(at)) for step, p, at in steps])
    return made


class _Augment(Transform):
    """Base: augments the only picture of a sample."""

    def __init__(self, interpolation: Any = InterpolationMode.NEAREST, fill: Any = None):
        super().__init__()
        name_of(interpolation)
        self.interpolation, self.fill = interpolation, fill

    def forward(self, *inputs: Any) -> Any:
        flat, form = tree_flatten(inputs if len(inputs) > 1 else inputs[0])
        chosen = pictures_of(flat)
        if len(chosen) != 1:
            raise TypeError(f"{type(self).__name__} takes a sample with one picture; got {len(chosen)}")
        beside = {kind_of(x) for x in flat if kind_of(x) and not is_picture(x)}
        if beside:
            raise TypeError(f"{type(self).__name__} can't move {', '.join(sorted(map(str, beside)))}, only pictures")
        x = flat[chosen[0]]
        flat[chosen[0]] = like(self.augmented(plain(x)), x) if is_picture(x) else self.augmented(x)
        return tree_unflatten(flat, form)

    def augmented(self, picture: Any) -> Any:
        raise NotImplementedError

    def strength(self, strengths: _Strengths, steps: int, picture: Any, at: int | Callable[[], int]) -> float:
        """That of a step, with a random sign where it has one."""
        made = strengths[0](steps, *get_size(picture))
        if made is None:
            return 0.0
        value = float(made[at if isinstance(at, int) else at()])
        return -value if strengths[1] and float(torch.rand(())) <= 0.5 else value

    def step(self, x: Any, name: str, strength: float) -> Any:
        fill = fill_for(self.fill, x)
        if name.startswith(("Shear", "Translate")):
            along = [0.0, 0.0]
            along["XY".index(name[-1])] = 1.0
            if name.startswith("Shear"):
                angle = math.degrees(math.atan(strength))
                shear, move, center = [angle * along[0], angle * along[1]], [0, 0], [0, 0]
            else:
                shear, move, center = [0.0, 0.0], [int(strength) * int(v) for v in along], None
            return warp.affine(x, 0.0, move, 1.0, shear, self.interpolation, fill, center)
        if name == "Rotate":
            return warp.rotate(x, strength, self.interpolation, fill=fill)
        if name in _BY_FACTOR:
            return _BY_FACTOR[name](x, 1.0 + strength)
        if name == "Posterize":
            return color.posterize(x, int(strength))
        if name == "Solarize":
            return color.solarize(x, strength * (largest(x.dtype) if isinstance(x, torch.Tensor) else 255.0))
        return _PLAIN[name](x)


_BY_FACTOR: dict[str, Callable[[Any, float], Any]] = {
    "Brightness": color.adjust_brightness,
    "Color": color.adjust_saturation,
    "Contrast": color.adjust_contrast,
    "Sharpness": color.adjust_sharpness,
}
_PLAIN: dict[str, Callable[[Any], Any]] = {
    "Identity": lambda x: x,
    "AutoContrast": color.autocontrast,
    "Equalize": color.equalize,
    "Invert": color.invert,
}


def _any_of(space: dict[str, _Strengths]) -> str:
    return tuple(space)[int(torch.randint(len(space), ()))]


class AutoAugment(_Augment):
    """Applies a random one of 25 pairs of steps found for a data set."""

    def __init__(self, policy: Any = AutoAugmentPolicy.IMAGENET, interpolation: Any = "nearest", fill: Any = None):
        super().__init__(interpolation, fill)
        name = getattr(policy, "value", policy)
        if name not in _POLICIES:
            raise ValueError(f"policy takes an AutoAugmentPolicy; got {policy!r}")
        self.policy, self._pairs = policy, _policy(name)

    def augmented(self, picture: Any) -> Any:
        for name, probability, at in self._pairs[int(torch.randint(len(self._pairs), ()))]:
            if not bool(torch.rand(()) <= probability):
                continue
            strengths = _NONE if name == "Invert" else _USUAL[name]
            picture = self.step(picture, name, self.strength(strengths, 10, picture, at))
        return picture


class RandAugment(_Augment):
    """Applies `num_ops` random steps of the same strength."""

    def __init__(
        self,
        num_ops: int = 2,
        magnitude: int = 9,
        num_magnitude_bins: int = 31,
        interpolation: Any = "nearest",
        fill: Any = None,
    ):
        super().__init__(interpolation, fill)
        if not isinstance(num_ops, int) or num_ops < 0:
            raise ValueError(f"num_ops is an integer, not negative; got {num_ops!r}")
        self.num_ops, self.magnitude, self.num_magnitude_bins = num_ops, magnitude, num_magnitude_bins

    def augmented(self, picture: Any) -> Any:
        for _ in range(self.num_ops):
            name = _any_of(_USUAL)
            at = self.strength(_USUAL[name], self.num_magnitude_bins, picture, self.magnitude)
            picture = self.step(picture, name, at)
        return picture


class TrivialAugmentWide(_Augment):
    """Applies one random step of a random strength."""

    def __init__(self, num_magnitude_bins: int = 31, interpolation: Any = "nearest", fill: Any = None):
        super().__init__(interpolation, fill)
        self.num_magnitude_bins = num_magnitude_bins

    def augmented(self, picture: Any) -> Any:
        name, n = _any_of(_WIDE), self.num_magnitude_bins
        return self.step(picture, name, self.strength(_WIDE[name], n, picture, lambda: int(torch.randint(n, ()))))


class AugMix(_Augment):
    """Mixes the image randomly with `mixture_width` chains of random steps."""

    def __init__(
        self,
        severity: int = 3,
        mixture_width: int = 3,
        chain_depth: int = -1,
        alpha: float = 1.0,
        all_ops: bool = True,
        interpolation: Any = "bilinear",
        fill: Any = None,
    ):
        super().__init__(interpolation, fill)
        if not 1 <= severity <= 10:
            raise ValueError(f"severity is in [1, 10]; got {severity}")
        self.severity, self.mixture_width, self.chain_depth = severity, mixture_width, chain_depth
        self.alpha, self.all_ops = alpha, all_ops

    def _shares(self, n: int, count: int, device: Any) -> torch.Tensor:
        return torch._sample_dirichlet(torch.full((n, count), float(self.alpha), device=device))

    def augmented(self, picture: Any) -> Any:
        x = pil_to_tensor(picture) if isinstance(picture, Image.Image) else picture
        batch = x.reshape(*(1,) * (4 - x.ndim), *x.shape)
        n, column = len(batch), (-1, *[1] * (batch.ndim - 1))
        space = {**_MIX, **_colors(0.9)} if self.all_ops else _MIX
        kept = self._shares(n, 2, x.device)
        shares = self._shares(n, self.mixture_width, x.device) * kept[:, 1:]
        mix = kept[:, 0].reshape(column) * batch
        for i in range(self.mixture_width):
            augmented = batch
            depth = self.chain_depth if self.chain_depth > 0 else int(torch.randint(low=1, high=4, size=(1,)))
            for _ in range(depth):
                name = _any_of(space)
                at = self.strength(space[name], 10, batch, lambda: int(torch.randint(self.severity, ())))
                augmented = self.step(augmented, name, at)
            mix.add_(shares[:, i].reshape(column) * augmented)
        mix = mix.reshape(x.shape).to(x.dtype)
        return to_pil_image(mix) if isinstance(picture, Image.Image) else mix
