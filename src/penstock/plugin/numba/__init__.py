# SPDX-License-Identifier: Apache-2.0
"""Functions compiled by Numba, as operators. Numba is imported when a pipeline that uses them is built."""

from typing import TYPE_CHECKING

from . import fn, ops
from ._function import NumbaFunction

__all__ = ["NumbaFunction", "address_as_void_pointer", "fn", "ops"]


if TYPE_CHECKING:
    from ._pointer import address_as_void_pointer as address_as_void_pointer
else:

    def __getattr__(name):
        if name == "address_as_void_pointer":  # needs Numba, which is imported only when used
            from ._pointer import address_as_void_pointer

            return address_as_void_pointer
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
