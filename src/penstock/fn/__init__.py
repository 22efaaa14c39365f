# SPDX-License-Identifier: Apache-2.0
"""Operators as functions: `fn.resize(images, size=224)`. Built from the registry; the stubs beside it are generated."""

from ..registry import build_functions as _build_functions

_build_functions(__name__)
