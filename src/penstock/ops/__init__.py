# SPDX-License-Identifier: Apache-2.0
"""Operators as classes: `ops.Resize(size=224)(images)`. Built from the registry; the stubs beside it are generated."""

from ..registry import build_classes as _build_classes

_build_classes(__name__)
