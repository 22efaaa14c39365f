# SPDX-License-Identifier: Apache-2.0
"""Pickler for sources that are sent to worker processes."""

from .external.by_value import Pickler as DaliCallbackPickler

__all__ = ["DaliCallbackPickler"]
