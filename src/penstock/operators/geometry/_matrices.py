# SPDX-License-Identifier: Apache-2.0
"""Small matrices, one per sample: lists of rows, whose elements are columns (n,) or numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def dot(x: Sequence, y: Sequence) -> Any:
    """Dot product of two vectors, summed from the first element."""
    total = x[0] * y[0]
    for p, q in zip(x[1:], y[1:]):
        total = total + p * q
    return total


def product(x: list[list], y: list[list]) -> list[list]:
    """x @ y"""
    return [[dot(row, column) for column in zip(*y)] for row in x]


def inverted(m: list[list]) -> tuple[list[list], np.ndarray]:
    """Inverses of 2 x 2 or 3 x 3 matrices by Cramer's rule, and determinants (n,)."""
    if len(m) == 2:
        (p, q), (r, s) = m
        determinant = p * s - q * r
        return [[s / determinant, -q / determinant], [-r / determinant, p / determinant]], determinant

    def cofactor(i: int, j: int) -> Any:
        (p, q), (r, s) = [[m[(i + di) % 3][(j + dj) % 3] for dj in (1, 2)] for di in (1, 2)]
        return p * s - q * r

    determinant = dot(m[0], [cofactor(0, j) for j in range(3)])
    return [[cofactor(j, i) / determinant for j in range(3)] for i in range(3)], determinant
