# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays in cache files for later runs: written atomically, with checksums."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping

import numpy as np

from .new_files import replacing


def load(path: str) -> dict[str, np.ndarray] | None:
    """None if there is no such file, or it is damaged."""
    import zipfile  # imported here to keep `import penstock` fast

    try:
        with np.load(path, allow_pickle=False) as file:  # a zip file, which has checksums
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def keep(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Ignores OSError."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with replacing(path) as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
