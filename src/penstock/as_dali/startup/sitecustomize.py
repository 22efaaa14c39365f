# SPDX-License-Identifier: Apache-2.0
"""Run by Python at the start of processes started by a program under `penstock.as_dali`, as this folder is on their
PYTHONPATH. Then runs the `sitecustomize` that it hides."""

from __future__ import annotations

import os
import sys
from importlib.machinery import SourceFileLoader

TYPE_CHECKING = False  # without importing typing
if TYPE_CHECKING:
    from typing import Any

_folder = os.path.dirname(os.path.abspath(__file__))
_finder = os.path.join(os.path.dirname(_folder), "finder.py")
_names: dict[str, Any] = {"__name__": "penstock_as_dali_finder", "__file__": _finder}
_code = SourceFileLoader(_names["__name__"], _finder).get_code(_names["__name__"])  # uses cached byte code
assert _code is not None
exec(_code, _names)
_names["install"]()

sys.path[:] = [p for p in sys.path if os.path.abspath(p) != _folder]
_this = sys.modules.pop("sitecustomize", None)
try:
    import sitecustomize  # noqa: F401
except ModuleNotFoundError as _error:
    if _error.name != "sitecustomize":
        raise
    if _this is not None:
        sys.modules["sitecustomize"] = _this
