# SPDX-License-Identifier: Apache-2.0
"""Pickling of sources for spawned worker processes."""

from .external.by_value import pickle_by_value

__all__ = ["pickle_by_value"]
