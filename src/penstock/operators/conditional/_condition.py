# SPDX-License-Identifier: Apache-2.0
"""Shared by the operators of conditionals."""

from __future__ import annotations

import math

import numpy as np

from ...core.batch import Batch
from ...core.errors import ArgumentValueError

# Samples up to this size in bytes are copied: one array is faster to create and to read than one pointer per sample.
SMALL_BYTES = 256


def truth(condition: Batch, what: str = "a condition of `if`") -> np.ndarray:
    """Booleans of shape (n,). Raises ValueError if the samples are not scalars."""
    if condition.spec.ndim:
        raise ValueError(
            f"{what} has to be a scalar of each sample (a tensor of 0 dimensions); got one of {condition.spec.ndim} "
            f"dimension{'s' * (condition.spec.ndim > 1)}. Make it one, for example by an operator of fn.reductions, or "
            "fn.squeeze, or fn.reshape(x, shape=[])"
        )
    values = condition.array()
    return values if values.dtype.kind == "b" else values != 0


def is_small(batch: Batch) -> bool:
    """Whether the samples are small and have the same shape, so that one copy is enough."""
    spec = batch.spec
    if not (batch.on_host and spec.n):
        return False
    return math.prod(spec.stored[0].tolist()) * spec.dtype.itemsize <= SMALL_BYTES and spec.is_dense


def made_by_if(name: str) -> ArgumentValueError:
    """The error for a direct call of this operator: a branch has batches smaller than the pipeline's, which only the
    branches of an `if` support."""
    return ArgumentValueError(
        f"fn.{name} is created by `if` and can't be called: write `if condition: x = ...` in a function decorated with "
        "@pipeline_def(enable_conditionals=True)"
    )
