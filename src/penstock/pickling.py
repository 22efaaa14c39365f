# SPDX-License-Identifier: Apache-2.0
"""How sources reach worker processes that are started afresh."""

from .external.by_value import pickle_by_value

__all__ = ["pickle_by_value"]
