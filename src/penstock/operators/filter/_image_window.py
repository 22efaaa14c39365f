# SPDX-License-Identifier: Apache-2.0
"""Base of image filters with a rectangular window."""

from typing import ClassVar

from ...core.batch import Spec
from ...core.op import Arguments, Operator


class ImageWindow(Operator, abstract=True):
    """Base of image filters with a rectangular window. Shape and type are kept."""

    module = "experimental"
    layouts: ClassVar[tuple[str, ...]] = ("HW", "HWC", "FHWC", "CHW", "FCHW", "FHW")
    types: ClassVar[tuple[str, ...]] = ("uint8", "uint16", "float32")

    def plan(self, a: Arguments, x: Spec) -> None:
        if x.dtype.name not in self.types:
            raise TypeError(
                f"input type {x.dtype.name} is not supported; supported: {', '.join(self.types)}; "
                "fn.cast converts others"
            )
        a.n_outer = int(x.layout.startswith("C"))

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        return x.like()
