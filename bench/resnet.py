# SPDX-License-Identifier: Apache-2.0
"""ResNet-18 and ResNet-50 (He et al. 2015; strides in the 3x3 convolutions), so that trainings need PyTorch only."""

from __future__ import annotations

import torch
from torch import nn

_BLOCKS = {"resnet18": (2, 2, 2, 2), "resnet50": (3, 4, 6, 3)}


def _convolution(channels: int, more: int, size: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(channels, more, size, stride, size // 2, bias=False), nn.BatchNorm2d(more)]


class Block(nn.Module):
    def __init__(self, channels: int, width: int, stride: int, bottleneck: bool):
        super().__init__()
        self.channels = width * (4 if bottleneck else 1)
        relu = nn.ReLU(inplace=True)
        if bottleneck:
            layers = [*_convolution(channels, width, 1), relu, *_convolution(width, width, 3, stride), relu]
            layers += _convolution(width, self.channels, 1)
        else:
            layers = [*_convolution(channels, width, 3, stride), relu, *_convolution(width, width, 3)]
        self.body = nn.Sequential(*layers)
        same = stride == 1 and channels == self.channels
        self.past = nn.Identity() if same else nn.Sequential(*_convolution(channels, self.channels, 1, stride))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.body(x) + self.past(x))


def resnet(name: str, classes: int = 1000) -> nn.Module:
    """For images of 224x224 pixels."""
    layers: list[nn.Module] = [*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    channels = 64
    for i, blocks in enumerate(_BLOCKS[name]):
        for k in range(blocks):
            block = Block(channels, 64 << i, 2 if i and not k else 1, name == "resnet50")
            layers.append(block)
            channels = block.channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
