# SPDX-License-Identifier: Apache-2.0
"""Base of operators that return affine transforms."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors, listed
from ...core.op import Arg, Arguments, Operator, PerSample

LAYOUT = "**"
_FLOAT = np.dtype("f4")


class Transform(Operator, abstract=True):
    """Base of operators that create a transform from their arguments; `matrix` returns it.

    With an input, float32 (d, d + 1), it is combined with the input, which is applied first by default."""

    module = "transforms"
    devices = ("cpu",)
    inputs = (0, 1)
    runs_frames = True
    _described: ClassVar[list[str]] = []  # arguments that may differ between samples
    is_prompt = True
    reverse_order = Arg(bool, False, "Whether the new transform is applied before that of the input, not after it.")

    def __init_subclass__(cls, abstract: bool = False) -> None:
        super().__init_subclass__(abstract)
        cls._described = [n for n, arg in cls.schema.items() if isinstance(arg, PerSample)]

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        """The transforms (n, d, d + 1), float64. `dims`: d of the input, or None."""
        raise NotImplementedError

    def run(self, a: Arguments, *inputs: Batch) -> Batch:
        if not inputs:
            return as_batch(self._matrix(a, None))
        of_input = [matrices(x, i) for i, x in enumerate(inputs)]
        dims = of_input[0].shape[1]
        matrix = self._matrix(a, dims)
        d = matrix.shape[1]
        if d != dims:
            raise ValueError(f"the input is a transform of {dims} dimensions, the arguments describe one of {d}")
        for earlier in of_input:
            earlier = earlier.astype("f8")
            matrix = compose(earlier, matrix) if self.values["reverse_order"] else compose(matrix, earlier)
        return as_batch(matrix)

    def _matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        if dims in a.memo:
            return a.memo[dims]
        with np.errstate(all="ignore"):
            matrix = self.matrix(a, dims)
        SampleErrors.where(
            ~np.isfinite(matrix).all(axis=(1, 2)),
            lambda i: (
                f"{', '.join(self._described)} describe no finite transform; its rows are "
                f"{', '.join(map(listed, matrix[i][:3]))}{', ...' * (len(matrix[i]) > 3)}"
            ),
        )
        a.memo[dims] = matrix
        return matrix


def matrices(batch: Batch, i: int) -> np.ndarray:
    """The transforms of input `i` as an array (n, d, d + 1)."""
    spec: Spec = batch.spec
    if spec.dtype == _FLOAT and spec.is_dense:
        array = batch.array()
        shape = array.shape
        if len(shape) == 3 and shape[1] + 1 == shape[2]:
            return array
    what = f"input {i}"
    if spec.dtype != _FLOAT:
        raise ValueError(f"{what} needs transforms of float32, got {spec.dtype.name}; fn.cast it")
    shapes = (spec.shape[:1] if spec.is_dense else spec.shape).tolist()
    if spec.ndim != 2 or any(rows + 1 != columns for rows, columns in shapes):
        raise ValueError(
            f"{what} needs transforms of shape (d, d + 1), such as (2, 3), or sequences of them, marked by "
            f"fn.per_frame; got shapes {spec.shape.tolist()[:4]}"
        )
    return batch.array()


def compose(after: np.ndarray, before: np.ndarray) -> np.ndarray:
    """The transforms that apply `before` and then `after`."""
    d = after.shape[1]
    product = after[..., :d] @ before
    product[..., d] += after[..., d]
    return product


def about(linear: np.ndarray, center: np.ndarray | None) -> np.ndarray:
    """Transforms (n, d, d + 1) of linear maps (n, d, d) with the fixed point `center` (n, d)."""
    n, d = linear.shape[:2]
    if center is None:
        shift = np.zeros((n, d))
    else:
        if center.shape[1] != d:
            raise ValueError(f"`center` needs {d} values, one per dimension of the transform; got {center.shape[1]}")
        center = center.astype("f8")
        shift = center - (linear @ center[..., None])[..., 0]
    return np.concatenate([linear, shift[..., None]], axis=2)


def diagonal(values: np.ndarray) -> np.ndarray:
    """Converts (n, d) to diagonal matrices (n, d, d)."""
    return values[..., None] * np.eye(values.shape[1])


def as_batch(matrix: np.ndarray) -> Batch:
    return Batch.from_array(matrix.astype(_FLOAT, copy=False), LAYOUT)
