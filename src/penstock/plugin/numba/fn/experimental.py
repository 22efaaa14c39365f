# SPDX-License-Identifier: Apache-2.0
"""Where DALI has them."""

from .._function import numba_function

__all__ = ["numba_function"]
