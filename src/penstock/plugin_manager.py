# SPDX-License-Identifier: Apache-2.0
"""Native plugins of DALI can't be loaded: they are linked against DALI's own library."""

from __future__ import annotations

import glob
import os


def load_library(library_path: str, global_symbols: bool = False) -> None:
    """Raises RuntimeError: operators compiled for DALI need DALI."""
    raise RuntimeError(
        f"{library_path}: a plugin compiled for DALI can't be loaded by penstock. Write the operator as a class and a "
        "C++ kernel (CONTRIBUTING.md, examples/writing_an_operator.ipynb), or as fn.python_function"
    )


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> None:
    """Loads what is in a folder of plugins, which must be none: see `load_library`."""
    for path in sorted(glob.glob(os.path.join(plugin_dir_path, "*", "libdali_*.so"))):
        load_library(path, global_symbols)
