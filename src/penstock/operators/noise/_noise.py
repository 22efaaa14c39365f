# SPDX-License-Identifier: Apache-2.0
"""Base of operators that add noise."""

from __future__ import annotations

from ...core.batch import Spec
from ...core.op import Arguments, Seeded

_TYPES = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64", "float32")


class Noise(Seeded, abstract=True):
    """Base of operators that change every element independently, also in different frames of a sequence."""

    module = "noise"
    by_frame = False

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in _TYPES:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(_TYPES)}; fn.cast converts others"
            )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()
