# SPDX-License-Identifier: Apache-2.0
"""The path from which programs for DALI import it."""

from ._function import NumbaFunction

__all__ = ["NumbaFunction"]
