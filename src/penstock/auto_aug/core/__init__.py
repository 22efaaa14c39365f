# SPDX-License-Identifier: Apache-2.0
"""Building blocks of automatic augmentation: the decorator, policies, signed magnitudes, and the choice per sample."""

from ._augmentation import Augmentation as _Augmentation
from ._augmentation import signed_bin
from ._select import select
from .decorator import augmentation
from .policy import Policy

__all__ = ("Policy", "_Augmentation", "augmentation", "select", "signed_bin")
