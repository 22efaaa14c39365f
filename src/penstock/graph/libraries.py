# SPDX-License-Identifier: Apache-2.0
"""Distinguishes modules of the user's program, where conditionals are converted, from libraries."""

from __future__ import annotations

import os
import sys

_KNOWN = frozenset(
    "penstock nvidia numpy scipy torch torchvision jax jaxlib flax tensorflow keras paddle cupy numba cv2 PIL pandas "
    "pytest _pytest hypothesis builtins".split()
)
_STDLIB = os.path.join(os.path.dirname(os.__file__), "")
_PACKAGES = ("site-packages", "dist-packages")


def is_library(module: str | None) -> bool:
    """Whether a module is a known library that never contains a part of a pipeline definition."""
    return (module or "").split(".")[0] in _KNOWN


def is_standard_module(module: str | None) -> bool:
    """Whether a module is in Python's standard library."""
    return (module or "").split(".")[0] in sys.stdlib_module_names and module != "__main__"


def is_standard_file(file: str) -> bool:
    """Whether a file is in Python's standard library."""
    return file.startswith(_STDLIB) and not any(p in file for p in _PACKAGES)
