# SPDX-License-Identifier: Apache-2.0
"""Native plugins: kernels of other packages. Plugins compiled for DALI can't be loaded, as they are linked against
DALI's own library."""

from __future__ import annotations

import glob
import os

from .core.kernels import add_library


def load_library(library_path: str, global_symbols: bool = False) -> None:
    """Loads a library of kernels, which operators defined afterwards can use. The sources of the kernels must be in the
    folder `kernels` beside it; CONTRIBUTING.md shows how they are written and built. `global_symbols` has no effect.

    Raises RuntimeError if the library can't be loaded, for example because it was compiled for DALI.
    """
    sources = os.path.join(os.path.dirname(os.path.abspath(library_path)), "kernels")
    if not os.path.isdir(sources):
        raise RuntimeError(
            f"{library_path}: there is no folder {sources} with the sources of its kernels. A plugin compiled for DALI "
            "can't be loaded by penstock. Write the operator as a class and a C++ kernel (CONTRIBUTING.md, "
            "examples/writing_an_operator.ipynb), or as fn.python_function"
        )
    try:
        add_library(os.path.abspath(library_path), sources)
    except (OSError, ValueError) as e:
        raise RuntimeError(f"{library_path} can't be loaded: {e}") from e


def load_directory(plugin_dir_path: str, global_symbols: bool = False) -> None:
    """Accepted for compatibility with a folder that has no plugins; see `load_library`."""
    for path in sorted(glob.glob(os.path.join(plugin_dir_path, "*", "libdali_*.so"))):
        load_library(path, global_symbols)
