# SPDX-License-Identifier: Apache-2.0
"""Functions under the names of `torchvision.transforms.v2.functional`.

They take and return Pillow images (modes L, RGB, RGBA) or PyTorch tensors, (..., C, H, W).

>>> import torch
>>> resize(torch.zeros(3, 8, 12), [4, 4]).shape
torch.Size([3, 4, 4])
"""

from .centercrop import center_crop
from .color import rgb_to_grayscale, to_grayscale
from .crop import crop, resized_crop
from .flips import horizontal_flip, vertical_flip
from .gaussian_blur import gaussian_blur
from .image_metadata import get_dimensions, get_image_size, get_size
from .normalize import normalize
from .pad import pad
from .resize import resize
from .totensor import pil_to_tensor, to_pil_image, to_tensor

__all__ = [
    "center_crop",
    "crop",
    "gaussian_blur",
    "get_dimensions",
    "get_image_size",
    "get_size",
    "horizontal_flip",
    "normalize",
    "pad",
    "pil_to_tensor",
    "resize",
    "resized_crop",
    "rgb_to_grayscale",
    "to_grayscale",
    "to_pil_image",
    "to_tensor",
    "vertical_flip",
]
