# SPDX-License-Identifier: Apache-2.0
"""The operators. Each file in operators/<family>/ that defines a subclass of `Operator` adds it; there is no list."""

import os
from importlib import import_module

_here = os.path.dirname(__file__)
for _family in sorted(f for f in os.listdir(_here) if f[0] != "_" and os.path.isdir(os.path.join(_here, f))):
    for _file in sorted(os.listdir(os.path.join(_here, _family))):
        if _file.endswith(".py") and _file[0] != "_":
            import_module(f"{__name__}.{_family}.{_file[:-3]}")
