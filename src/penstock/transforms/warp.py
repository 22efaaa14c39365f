# SPDX-License-Identifier: Apache-2.0
"""Transforms that rotate, shear and warp images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from ._transform import RandomTransform, Transform
from .functional import geometry
from .functional import warp as F
from .functional.geometry import InterpolationMode
from .geometry import fill_for


def _angles(value: float | Sequence[float], name: str, counts: tuple[int, ...] = (2,)) -> list[float]:
    if isinstance(value, (int, float)):
        if value < 0:
            raise ValueError(f"{name} as one number is not negative; got {value}")
        return [-float(value), float(value)]
    if len(value) not in counts:
        raise ValueError(f"{name} takes a number, or {' or '.join(map(str, counts))} of them; got {value}")
    return [float(v) for v in value]


def _uniform(low: float, high: float) -> float:
    return torch.empty(1).uniform_(low, high).item()


class RandomRotation(Transform):
    """Rotates by a random angle in degrees, from -degrees to degrees or in a range."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        interpolation: Any = InterpolationMode.NEAREST,
        expand: bool = False,
        center: Sequence[float] | None = None,
        fill: Any = 0,
    ):
        super().__init__()
        geometry.name_of(interpolation)
        self.degrees, self.interpolation, self.expand = _angles(degrees, "degrees"), interpolation, expand
        self.center, self.fill = center, fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        return {"angle": _uniform(*self.degrees)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        fill = fill_for(self.fill, inpt)
        return F.rotate(inpt, params["angle"], self.interpolation, self.expand, self.center, fill)


class RandomAffine(Transform):
    """Applies a random rotation, translation (in shares of the size), scaling and shear around the centre."""

    def __init__(
        self,
        degrees: float | Sequence[float],
        translate: Sequence[float] | None = None,
        scale: Sequence[float] | None = None,
        shear: float | Sequence[float] | None = None,
        interpolation: Any = InterpolationMode.NEAREST,
        fill: Any = 0,
        center: Sequence[float] | None = None,
    ):
        super().__init__()
        geometry.name_of(interpolation)
        if translate is not None and (len(translate) != 2 or not all(0 <= t <= 1 for t in translate)):
            raise ValueError(f"translate takes two shares of the size, in [0, 1]; got {translate}")
        if scale is not None and (len(scale) != 2 or min(scale) <= 0):
            raise ValueError(f"scale takes two positive factors; got {scale}")
        self.degrees, self.translate, self.scale = _angles(degrees, "degrees"), translate, scale
        self.shear = None if shear is None else _angles(shear, "shear", (2, 4))
        self.interpolation, self.fill, self.center = interpolation, fill, center

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = geometry.get_size(flat_inputs[0])
        angle = _uniform(*self.degrees)
        most = [t * n for t, n in zip(self.translate or (), (width, height))]
        translate = [round(_uniform(-m, m)) for m in most] or [0, 0]
        scale = 1.0 if self.scale is None else _uniform(*self.scale)
        shear = [0.0, 0.0]
        for i in range(0, len(self.shear or ()), 2):
            shear[i // 2] = _uniform(*self.shear[i : i + 2])  # type: ignore[index]
        return {"angle": angle, "translate": translate, "scale": scale, "shear": shear}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        where = {"interpolation": self.interpolation, "fill": fill_for(self.fill, inpt), "center": self.center}
        return F.affine(inpt, **params, **where)


class RandomPerspective(RandomTransform):
    """Applies a random perspective with the probability `p`: corners move inwards by up to `distortion_scale`."""

    def __init__(
        self,
        distortion_scale: float = 0.5,
        p: float = 0.5,
        interpolation: Any = InterpolationMode.BILINEAR,
        fill: Any = 0,
    ):
        super().__init__(p)
        geometry.name_of(interpolation)
        if not 0 <= distortion_scale <= 1:
            raise ValueError(f"distortion_scale is in [0, 1]; got {distortion_scale}")
        self.distortion_scale, self.interpolation, self.fill = distortion_scale, interpolation, fill

    def make_params(self, flat_inputs: list[Any]) -> dict[str, Any]:
        height, width = geometry.get_size(flat_inputs[0])
        across, down = (int(self.distortion_scale * (n // 2)) + 1 for n in (width, height))
        end = []
        for right, bottom in ((False, False), (True, False), (True, True), (False, True)):
            x = torch.randint(width - across if right else 0, width if right else across, size=(1,))
            y = torch.randint(height - down if bottom else 0, height if bottom else down, size=(1,))
            end.append([int(x), int(y)])
        start = [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]]
        return {"coefficients": F.perspective_coefficients(start, end)}

    def transform(self, inpt: Any, params: dict[str, Any]) -> Any:
        return F.perspective(inpt, None, None, self.interpolation, fill_for(self.fill, inpt), params["coefficients"])
