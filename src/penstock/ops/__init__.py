# SPDX-License-Identifier: Apache-2.0
"""Operators as classes: `ops.Resize(size=224)(images)`. Built from the registry; the stubs beside it are generated."""

from ..registry import build_classes as _build_classes
from .composing import Compose as Compose
from .composing import Reload as Reload
from .composing import python_op_factory as python_op_factory

_build_classes(__name__)
__all__ = sorted([*globals()["__all__"], "Compose", "Reload", "python_op_factory"])
