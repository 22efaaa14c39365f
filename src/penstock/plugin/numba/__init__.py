# SPDX-License-Identifier: Apache-2.0
"""Functions compiled by Numba, in the graph. Needs Numba, which is imported when a pipeline is built that uses them."""

from . import fn, ops
from ._function import NumbaFunction

__all__ = ["NumbaFunction", "fn", "ops"]
