# SPDX-License-Identifier: Apache-2.0
"""Addresses as pointers, in compiled functions. Needs Numba."""

from __future__ import annotations

from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic


@intrinsic
def address_as_void_pointer(typingctx: Any, src: Any) -> Any:
    """For compiled functions: converts an address to a pointer, for `numba.carray`."""

    def inttoptr(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.inttoptr(arguments[0], cgutils.voidptr_t)

    return types.voidptr(src), inttoptr
