# SPDX-License-Identifier: Apache-2.0
"""Operators as classes: `ops.Resize(size=224)(images)`. Built from the registry; the stubs beside it are generated."""

from ..registry import build_classes as _build_classes
from ..registry.composing import Compose as Compose
from ..registry.composing import Reload as Reload
from ..registry.composing import cpu_ops as cpu_ops
from ..registry.composing import gpu_ops as gpu_ops
from ..registry.composing import mixed_ops as mixed_ops
from ..registry.composing import python_op_factory as python_op_factory

_build_classes(__name__)
__all__ = sorted([*globals()["__all__"], "Compose", "Reload", "cpu_ops", "gpu_ops", "mixed_ops", "python_op_factory"])
