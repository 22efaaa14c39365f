# SPDX-License-Identifier: Apache-2.0
"""Base of operators that sample pixels at computed coordinates: warp_perspective, sphere, water, jitter."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIInterpType
from ...core.op import Arg, Arguments, Operator, PerSample

_TYPES = ("uint8", "uint16", "int16", "float32")
INTERP = {  # enum Interpolation of kernels/geometry/sampling.h
    DALIInterpType.INTERP_NN: 0,
    DALIInterpType.INTERP_LINEAR: 1,
    DALIInterpType.INTERP_CUBIC: 2,
    DALIInterpType.INTERP_LANCZOS3: 3,
}
PERSPECTIVE, SPHERE, WATER, JITTER = range(1, 5)  # as in kernels/geometry/displace.h


def check_type(x: Spec) -> None:
    if x.dtype.name not in _TYPES:
        raise ValueError(
            f"the type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}; fn.cast the input first"
        )


def check_interp(operator: Operator, name: str, accepted: tuple[DALIInterpType, ...]) -> int:
    """The kernel's value of an interpolation."""
    value = operator.values[name]
    if value not in accepted:
        raise ValueError(
            f"{operator.display_name()}: {name}={value!r} is not supported; supported: "
            f"{', '.join(i.name for i in accepted)}"
        )
    return INTERP[value]


class Displaced(Operator, abstract=True):
    """Base class. `a.kind`: the formula of the coordinates; `a.constants` (n, up to 9): its parameters; samples with a
    non-zero `a.still` (n,) are not changed."""

    kernel = "geometry/displace"
    windowed = "HW"
    border = 0
    interp: int

    def fills(self) -> list[float]:
        return [self.values["fill_value"]]

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        return x.like()

    def params(self, a: Arguments, x: Spec, *specs: Spec) -> dict[str, Any]:
        out = specs[-1]
        axes = [x.axis("W"), x.axis("H")]
        fill = self.fills()
        return {
            "p": getattr(a, "constants", 0),
            "fill": np.array([fill], "f4"),
            "n_fill": len(fill),
            "range": 0,
            "extent": x.shape[:, axes],
            "origin": out.origin[:, axes],
            "key": 0,
            "position": 0,
            "epoch": 0,
            "kind": a.kind,
            "interp": self.interp,
            "border": self.border,
            "planar": x.axis("C") != x.ndim - 1,
            "still": getattr(a, "still", 0),
        }


class Masked(Displaced, abstract=True):
    """Base of operators on HWC images with a `mask` of the samples to change."""

    layouts = ("HWC",)
    kind: int
    mask = PerSample(int, 1, "Whether to change the sample; 0 or 1.")
    fill_value = Arg(float, 0.0, "Value outside the image, converted to the type of the image.")
    interp_type = Arg(DALIInterpType, DALIInterpType.INTERP_NN, "INTERP_NN or INTERP_LINEAR.")

    def setup(self) -> None:
        self.interp = check_interp(self, "interp_type", (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR))

    def plan(self, a: Arguments, x: Spec) -> None:
        check_type(x)
        a.kind, a.still = self.kind, np.where(a.mask != 0, 0, 1)
