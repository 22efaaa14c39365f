# SPDX-License-Identifier: Apache-2.0
"""Compressed inputs for bench/operator_cases.py."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

_CLASSES = 5  # lowest bits of gray, which are dropped to get a class


def _encode(data: bytes) -> bytes:
    """An LZ4 block, by the lz4 library if installed, else by the encoder of the tests."""
    try:
        from lz4.block import compress
    except ImportError:
        sys.path.append(str(Path(__file__).parents[1] / "tests"))
        from lz4_blocks import encode

        return encode(data)
    return compress(data, store_size=False)


@cache
def _chunks(photo: bytes, width: int, rows: int) -> tuple[bytes, ...]:
    return tuple(_encode(photo[i : i + rows * width]) for i in range(0, len(photo) - rows * width + 1, rows * width))


def blocks(photos: list[np.ndarray], rows: int = 0) -> list[tuple[np.ndarray, np.ndarray]]:
    """LZ4 blocks of the classes of gray in each photograph, with `rows` rows each (0: all rows), and their sizes."""
    made = []
    for p in photos:
        chunks = _chunks((p[..., 1] >> _CLASSES).tobytes(), p.shape[1], rows or p.shape[0])
        made.append((np.frombuffer(b"".join(chunks), "u1"), np.array([len(c) for c in chunks], "i4")))
    return made
