# SPDX-License-Identifier: Apache-2.0
"""Packages that only some tests use. Without them, those tests are skipped when they run, but their files can be
imported, as tools that collect declarations import all test files."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest


def needs(*names: str) -> pytest.MarkDecorator:
    """Skips tests, or with `pytestmark = needs(...)` all tests of a file, if these packages are missing."""
    missing = [name for name in names if not _is_there(name)]
    return pytest.mark.skipif(bool(missing), reason=f"not installed: {', '.join(missing)}")


def _is_there(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


class Package:
    """A package that is imported on first use. If it is missing, the test is skipped."""

    def __init__(self, name: str):
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(pytest.importorskip(self._name), name)
