# SPDX-License-Identifier: Apache-2.0
"""Image transforms, under the names of `torchvision.transforms.v2`; `functional` has the functions."""

from . import functional as functional
