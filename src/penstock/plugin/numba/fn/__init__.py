# SPDX-License-Identifier: Apache-2.0
"""Operators as functions."""

from . import experimental

__all__ = ["experimental"]
