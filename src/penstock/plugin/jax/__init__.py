# SPDX-License-Identifier: Apache-2.0
"""Iterators that return JAX arrays. Arrays of CPU pipelines share the memory of the batch: nothing is copied."""

from typing import TYPE_CHECKING

from ...core.constructors import no_attribute
from ..base_iterator import LastBatchPolicy
from . import fn
from .iterator import DALIGenericIterator, data_iterator
from .ragged import DALIRaggedIterator

__all__ = ["DALIGenericIterator", "DALIRaggedIterator", "LastBatchPolicy", "data_iterator", "fn"]


if not TYPE_CHECKING:

    def __getattr__(name):
        raise no_attribute(__name__, name)
