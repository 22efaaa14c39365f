# SPDX-License-Identifier: Apache-2.0
"""Run by Python when a process begins that was started by a program under `penstock.as_dali`: this folder is on its
PYTHONPATH. Then runs the `sitecustomize` that would have been found without it."""

import os
import sys
from importlib.machinery import SourceFileLoader

_folder = os.path.dirname(os.path.abspath(__file__))
_finder = os.path.join(os.path.dirname(_folder), "finder.py")
_names = {"__name__": "penstock_as_dali_finder", "__file__": _finder}
exec(SourceFileLoader(_names["__name__"], _finder).get_code(_names["__name__"]), _names)  # from its byte code
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
