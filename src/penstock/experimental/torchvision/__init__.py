# SPDX-License-Identifier: Apache-2.0
"""Image transforms under the names of `torchvision.transforms.v2`, run by penstock's operators.

Images are `PIL.Image.Image` (modes L, RGB, RGBA) or `torch.Tensor`, CHW or with more axes before (NCHW). The result is
of the same kind, unless `PILToTensor`, `ToPureTensor` or `ToPILImage` is used. A `Compose` makes one graph of its
transforms, which takes each image through all of them at once. Requires PyTorch, and Pillow for its images.

>>> import torch
>>> transform = Compose([Resize(32), CenterCrop(24), Normalize(mean=[127.5], std=[127.5])])
>>> transform(torch.full((8, 3, 48, 64), 255, dtype=torch.uint8)).shape
torch.Size([8, 3, 24, 24])
"""

from typing import TYPE_CHECKING

from . import v2
from .v2._enums import InterpolationMode
from .v2.centercrop import CenterCrop
from .v2.color import ColorJitter, Grayscale, RandomGrayscale
from .v2.compose import Compose
from .v2.flips import RandomHorizontalFlip, RandomVerticalFlip
from .v2.gaussian_blur import GaussianBlur
from .v2.normalize import Normalize
from .v2.pad import Pad
from .v2.rand_apply import RandomApply
from .v2.randomcrop import RandomCrop, RandomResizedCrop
from .v2.resize import Resize
from .v2.totensor import PILToTensor, ToPILImage, ToPureTensor

__all__ = [
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "GaussianBlur",
    "Grayscale",
    "InterpolationMode",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandomApply",
    "RandomCrop",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomResizedCrop",
    "RandomVerticalFlip",
    "Resize",
    "ToPILImage",
    "ToPureTensor",
    "v2",
]


if not TYPE_CHECKING:

    def __getattr__(name):
        if name.startswith("_"):
            raise AttributeError(name)
        from ...core.errors import suggest

        near = suggest(name, __all__) or f" There are {', '.join(__all__)}."
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'.{near}")
