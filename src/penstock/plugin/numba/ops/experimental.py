# SPDX-License-Identifier: Apache-2.0
"""The import path of DALI programs."""

from .._function import NumbaFunction

__all__ = ["NumbaFunction"]
