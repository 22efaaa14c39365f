# SPDX-License-Identifier: Apache-2.0
"""The import path of DALI programs."""

from .._function import numba_function

__all__ = ["numba_function"]
