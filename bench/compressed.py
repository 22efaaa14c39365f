# SPDX-License-Identifier: Apache-2.0
"""Compressed inputs for bench/operator_cases.py."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np

_CLASSES = 5  # bits of gray that are not part of a class


def _encode(data: bytes) -> bytes:
    """By the lz4 library where it is there, else by the tests' own encoder: blocks of LZ4."""
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
    """Of the classes of gray in each photograph: blocks of so many rows (0: all of them), and their sizes."""
    made = []
    for p in photos:
        chunks = _chunks((p[..., 1] >> _CLASSES).tobytes(), p.shape[1], rows or p.shape[0])
        made.append((np.frombuffer(b"".join(chunks), "u1"), np.array([len(c) for c in chunks], "i4")))
    return made
