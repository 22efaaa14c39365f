# SPDX-License-Identifier: Apache-2.0
"""Where DALI has them."""

from .._function import NumbaFunction

__all__ = ["NumbaFunction"]
