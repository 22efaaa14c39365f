# SPDX-License-Identifier: Apache-2.0
"""The operators. A file in operators/<family>/ that defines a subclass of `Operator` adds it; no list is kept."""

from importlib import import_module
from pathlib import Path

for _file in sorted(Path(__file__).parent.glob("*/[!_]*.py")):
    import_module(f"{__name__}.{_file.parent.name}.{_file.stem}")
