# SPDX-License-Identifier: Apache-2.0
"""torchvision's transforms, with exactly the pixels of torchvision for tensors and of Pillow for images.

Names and arguments are those of `torchvision.transforms.v2`; to convert a program, change its import. With the same
state of PyTorch's generator, random transforms draw the same parameters. Requires PyTorch and Pillow, not torchvision.

>>> import torch
>>> t = Compose([RandomResizedCrop(24), RandomHorizontalFlip(), ToDtype(torch.float32, scale=True)])
>>> t(torch.zeros(3, 48, 64, dtype=torch.uint8)).shape
torch.Size([3, 24, 24])
"""

from typing import Any

from . import functional
from ._transform import Compose, Identity, Lambda, RandomApply, RandomChoice, RandomOrder, Transform
from .auto_augment import AugMix, AutoAugment, AutoAugmentPolicy, RandAugment, TrivialAugmentWide
from .batches import CutMix, MixUp
from .color import (
    ColorJitter,
    GaussianBlur,
    Grayscale,
    RandomAdjustSharpness,
    RandomAutocontrast,
    RandomEqualize,
    RandomGrayscale,
    RandomInvert,
    RandomPosterize,
    RandomSolarize,
)
from .convert import (
    ConvertImageDtype,
    Normalize,
    PILToTensor,
    ToDtype,
    ToImage,
    ToPILImage,
    ToPureTensor,
    ToTensor,
)
from .functional.geometry import InterpolationMode
from .geometry import (
    CenterCrop,
    Pad,
    RandomCrop,
    RandomErasing,
    RandomHorizontalFlip,
    RandomResizedCrop,
    RandomVerticalFlip,
    Resize,
)
from .warp import RandomAffine, RandomPerspective, RandomRotation

__all__ = [
    "AugMix",
    "AutoAugment",
    "AutoAugmentPolicy",
    "CenterCrop",
    "ColorJitter",
    "Compose",
    "ConvertImageDtype",
    "CutMix",
    "GaussianBlur",
    "Grayscale",
    "Identity",
    "InterpolationMode",
    "Lambda",
    "MixUp",
    "Normalize",
    "PILToTensor",
    "Pad",
    "RandAugment",
    "RandomAdjustSharpness",
    "RandomAffine",
    "RandomApply",
    "RandomAutocontrast",
    "RandomChoice",
    "RandomCrop",
    "RandomEqualize",
    "RandomErasing",
    "RandomGrayscale",
    "RandomHorizontalFlip",
    "RandomInvert",
    "RandomOrder",
    "RandomPerspective",
    "RandomPosterize",
    "RandomResizedCrop",
    "RandomRotation",
    "RandomSolarize",
    "RandomVerticalFlip",
    "Resize",
    "ToDtype",
    "ToImage",
    "ToPILImage",
    "ToPureTensor",
    "ToTensor",
    "Transform",
    "TrivialAugmentWide",
    "functional",
]

_IN_PIPELINES = {
    "ElasticTransform": "fn.remap",
    "GaussianNoise": "fn.noise.gaussian",
    "JPEG": "fn.jpeg_compression_distortion",
}
_NOT_HERE = (
    *_IN_PIPELINES,
    *("ClampBoundingBoxes", "ClampKeyPoints", "ConvertBoundingBoxFormat", "FiveCrop", "LinearTransformation", "RGB"),
    *("RandomChannelPermutation", "RandomIoUCrop", "RandomPhotometricDistort", "RandomResize", "RandomShortestSize"),
    *("RandomZoomOut", "SanitizeBoundingBoxes", "SanitizeKeyPoints", "ScaleJitter", "SetClampingMode", "TenCrop"),
    "UniformTemporalSubsample",
)


def __getattr__(name: str) -> Any:
    if name not in _NOT_HERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    pipelines = f"; in pipelines there is {_IN_PIPELINES[name]}" if name in _IN_PIPELINES else ""
    raise AttributeError(
        f"penstock.transforms has no {name}; put torchvision.transforms.v2.{name} into the same Compose{pipelines}"
    )
