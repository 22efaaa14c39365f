# SPDX-License-Identifier: Apache-2.0
"""Measures whether the loader is the bottleneck: wrap it, read its metrics, then replay cached batches and compare."""

from .loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]
