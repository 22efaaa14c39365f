# SPDX-License-Identifier: Apache-2.0
"""Is the loader the bottleneck? Wrap it, look at its metrics, then replay kept batches and compare."""

from .loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]
