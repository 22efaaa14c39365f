# SPDX-License-Identifier: Apache-2.0
"""Operators as functions."""

from . import experimental
from .experimental import numba_function

__all__ = ["experimental", "numba_function"]
