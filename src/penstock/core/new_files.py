# SPDX-License-Identifier: Apache-2.0
"""Files that appear only when they are complete."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], mode: str = "wb", **options: Any) -> Iterator[Any]:
    """Context manager: a file that takes the place of `path` at the end, so that nobody reads an incomplete one, and
    the one that was there stays if the disk is full or the process is killed. Raises OSError that names `path`."""
    target = os.path.realpath(path)
    is_special = os.path.exists(target) and not os.path.isfile(target)  # such as /dev/stdout: nothing to be replaced
    unfinished = target if is_special else f"{target}.{os.getpid()}-{threading.get_ident()}.new"
    try:
        with open(unfinished, mode, **options) as file:
            yield file
        if not is_special:
            os.replace(unfinished, target)
    except BaseException as e:
        if not is_special:
            with contextlib.suppress(OSError):
                os.unlink(unfinished)
        if isinstance(e, OSError):
            raise OSError(e.errno, e.strerror, os.fspath(path)) from None
        raise
