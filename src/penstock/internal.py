# SPDX-License-Identifier: Apache-2.0
"""Equivalent of DALI's module of this name."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from types import ModuleType
from typing import Any


def get_submodule(root: str | ModuleType, path: str | Sequence[str]) -> Any:
    """A module below another one, by its path: "readers", or ["experimental", "decoders"].

    >>> import penstock
    >>> get_submodule(penstock.fn, "decoders").__name__
    'penstock.fn.decoders'
    """
    name = root if isinstance(root, str) else root.__name__
    return importlib.import_module(".".join([name, *([path] if isinstance(path, str) else path)]))
