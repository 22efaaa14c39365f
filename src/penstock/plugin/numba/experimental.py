# SPDX-License-Identifier: Apache-2.0
"""Where programs of DALI have it from."""

from ._function import NumbaFunction

__all__ = ["NumbaFunction"]
