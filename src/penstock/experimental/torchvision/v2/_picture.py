# SPDX-License-Identifier: Apache-2.0
"""Pictures while a graph is made of transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .... import fn
from ....pipeline import DataNode


@dataclass(frozen=True)
class Picture:
    """What is known of the pictures between two transforms."""

    data: DataNode
    layout: str  # "HWC" or "CHW"
    channels: int
    dtype: np.dtype
    form: str  # "image" or "tensor": what they came in as
    wanted: str  # the layout that they are needed in at last

    def made(self, data: Any, **changed: Any) -> Picture:
        """What a transform makes of them."""
        return replace(self, data=data, **changed)

    def check_type(self, who: str, accepted: tuple[str, ...]) -> None:
        """Raises ValueError if the transform `who` has no use for elements of this type."""
        if self.dtype.name not in accepted:
            raise ValueError(
                f"{who} takes pictures of {', '.join(accepted)}; these are of {self.dtype.name}. Convert them first"
            )

    def on(self, device: str) -> Picture:
        """The same on the device of the transform that comes next."""
        if self.data.device == device:
            return self
        return self.made(self.data.gpu() if device == "gpu" else self.data.cpu())

    def as_layout(self, layout: str) -> Picture:
        """The same with the channels elsewhere."""
        if layout == self.layout:
            return self
        order = [self.layout.index(axis) for axis in layout]
        if self.channels == 1:  # nothing moves in memory
            return self.made(fn.reshape(self.data, src_dims=order, layout=layout), layout=layout)
        return self.made(fn.transpose(self.data, perm=order), layout=layout)

    def channels_of(self, first: int, end: int) -> Picture:
        """Some of the channels."""
        data = fn.slice(self.data, start=[first], end=[end], axes=[self.layout.index("C")])
        return self.made(data, channels=end - first)

    def joined(self, other: Picture) -> Picture:
        """With the channels of the other behind."""
        other = other.as_layout(self.layout)
        data = fn.cat(self.data, other.data, axis=self.layout.index("C"))
        return self.made(data, channels=self.channels + other.channels)
