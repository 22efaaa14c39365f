# SPDX-License-Identifier: Apache-2.0
"""For type checkers: the operators of tensors and batches. With a batch, the result is a batch. Not imported at run
time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from ._batch import Batch
from ._tensor import Tensor

One: TypeAlias = Tensor | NDArray[Any] | np.generic | float


class _OfTensor(Protocol):
    @overload
    def __call__(self, other: Batch, /) -> Batch: ...
    @overload
    def __call__(self, other: One, /) -> Tensor: ...


class _OfBatch(Protocol):
    def __call__(self, other: Batch | One, /) -> Batch: ...


class Binary(Protocol):
    @overload
    def __get__(self, left: Tensor, owner: Any, /) -> _OfTensor: ...
    @overload
    def __get__(self, left: Batch, owner: Any, /) -> _OfBatch: ...


class OfOne(Protocol):
    """A function of one operand."""

    @overload
    def __call__(self, input: Batch) -> Batch: ...
    @overload
    def __call__(self, input: One | Sequence[float]) -> Tensor: ...


class OfTwo(Protocol):
    @overload
    def __call__(self, left: Batch, right: Batch | One, /) -> Batch: ...
    @overload
    def __call__(self, left: One, right: Batch, /) -> Batch: ...
    @overload
    def __call__(self, left: One, right: One, /) -> Tensor: ...


class OfThree(Protocol):
    @overload
    def __call__(self, value: Batch, lo: Batch | One, hi: Batch | One) -> Batch: ...
    @overload
    def __call__(self, value: One, lo: One, hi: One) -> Tensor: ...
