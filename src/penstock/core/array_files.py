# SPDX-License-Identifier: Apache-2.0
"""NumPy arrays in cache files for later runs: written atomically, with checksums."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np


def load(path: str) -> dict[str, np.ndarray] | None:
    """None if there is no such file, or it is damaged."""
    import zipfile  # imported here to keep `import penstock` fast

    try:
        with np.load(path, allow_pickle=False) as file:  # a zip file, which has checksums
            return {key: file[key] for key in file.files}
    except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile):
        return None


def keep(path: str, arrays: Mapping[str, np.ndarray]) -> None:
    """Writes to a temporary file and renames it, so that no reader sees a partial file. Ignores OSError."""
    import tempfile

    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        handle, unfinished = tempfile.mkstemp(dir=os.path.dirname(path))
        try:
            with os.fdopen(handle, "wb") as file:
                np.savez(file, **arrays)  # type: ignore[arg-type]
            os.replace(unfinished, path)
        except BaseException:
            os.unlink(unfinished)
            raise
    except OSError:
        pass
