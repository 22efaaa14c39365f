# SPDX-License-Identifier: Apache-2.0
"""Loads Python files outside of the package (examples, tools, other tests) as modules, by path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


def load(path: Path, name: str = "") -> ModuleType:
    """Runs a file. With a name, the module is added to `sys.modules`, which pickled classes require."""
    spec = importlib.util.spec_from_file_location(name or path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    if name:
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def operator_tests() -> dict[str, list[Any]]:
    """The `op_test` declarations of all operators' tests, by operator."""
    found: dict[str, list[Any]] = {}
    for path in sorted((ROOT / "tests" / "operators").glob("*/test_*.py")):
        if "op_test(" not in path.read_text():
            continue
        if str(path.parent) not in sys.path:  # as in pytest
            sys.path.append(str(path.parent))
        try:
            module = load(path, f"operator_tests.{path.parent.name}.{path.stem}")
        except pytest.skip.Exception as e:  # would skip all tests that use the declarations
            raise RuntimeError(f"{path} declares tests of operators and must not be skipped: {e}") from e
        for value in vars(module).values():
            if isinstance(value, type) and hasattr(value, "declaration"):
                found.setdefault(value.operator, []).append(value.declaration)
    return found
