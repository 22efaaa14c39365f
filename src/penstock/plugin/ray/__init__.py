# SPDX-License-Identifier: Apache-2.0
"""Pipelines in Ray Data: as the source of a dataset, `read_penstock`, and as a stage for `map_batches`, `Stage`.

Ray is imported when one of them is used."""

from .reading import read_penstock as read_penstock
from .stage import Stage as Stage

__all__ = ["Stage", "read_penstock"]
