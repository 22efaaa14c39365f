# SPDX-License-Identifier: Apache-2.0
"""Which modules are the user's program, which conditionals reach into, and which are libraries."""

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
    """Whether a module of this name is one of the libraries that never hold a part of a pipeline's definition."""
    return (module or "").split(".")[0] in _KNOWN


def is_standard_module(module: str | None) -> bool:
    """Whether a module of this name comes with Python."""
    return (module or "").split(".")[0] in sys.stdlib_module_names and module != "__main__"


def is_standard_file(file: str) -> bool:
    """Whether a file comes with Python."""
    return file.startswith(_STDLIB) and not any(p in file for p in _PACKAGES)
