# SPDX-License-Identifier: Apache-2.0
"""State of the images while a graph is created from transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .... import fn
from ....pipeline import DataNode


@dataclass(frozen=True)
class Picture:
    """Properties of the images between two transforms."""

    data: DataNode
    layout: str  # "HWC" or "CHW"
    channels: int
    dtype: np.dtype
    form: str  # "image" or "tensor": kind of the input
    wanted: str  # layout required at the end

    def made(self, data: Any, **changed: Any) -> Picture:
        """The result of a transform."""
        return replace(self, data=data, **changed)

    def check_type(self, who: str, accepted: tuple[str, ...]) -> None:
        """Raises ValueError if the transform `who` does not support this type."""
        if self.dtype.name not in accepted:
            raise ValueError(
                f"{who} takes pictures of {', '.join(accepted)}; these are of {self.dtype.name}. Convert them first"
            )

    def on(self, device: str) -> Picture:
        """Moves the images to a device, for the next transform."""
        if self.data.device == device:
            return self
        return self.made(self.data.gpu() if device == "gpu" else self.data.cpu())

    def as_layout(self, layout: str) -> Picture:
        """Changes the layout."""
        if layout == self.layout:
            return self
        order = [self.layout.index(axis) for axis in layout]
        if self.channels == 1:  # the order in memory does not change
            return self.made(fn.reshape(self.data, src_dims=order, layout=layout), layout=layout)
        return self.made(fn.transpose(self.data, perm=order), layout=layout)

    def channels_of(self, first: int, end: int) -> Picture:
        """Selects channels."""
        data = fn.slice(self.data, start=[first], end=[end], axes=[self.layout.index("C")])
        return self.made(data, channels=end - first)

    def joined(self, other: Picture) -> Picture:
        """Appends the channels of another picture."""
        other = other.as_layout(self.layout)
        data = fn.cat(self.data, other.data, axis=self.layout.index("C"))
        return self.made(data, channels=self.channels + other.channels)
