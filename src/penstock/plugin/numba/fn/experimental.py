# SPDX-License-Identifier: Apache-2.0
"""The path from which programs for DALI import them."""

from .._function import numba_function

__all__ = ["numba_function"]
