# SPDX-License-Identifier: Apache-2.0
"""Operators as classes."""

from . import experimental

__all__ = ["experimental"]
