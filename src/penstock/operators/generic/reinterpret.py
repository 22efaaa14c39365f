# SPDX-License-Identifier: Apache-2.0
"""Reinterprets bytes with another type, shape or layout."""

from __future__ import annotations

import numpy as np

from ...core.batch import Spec
from ...core.dtypes import DALIDataType, to_numpy
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments
from .reshape import Reshape


class Reinterpret(Reshape):
    """Interprets the bytes of the input as elements of another type, with another shape or layout as in `fn.reshape`.
    Nothing is copied.

    The number of bytes is kept. Without a shape, the extent of the last axis changes with the size of the elements; its
    number of bytes must be a multiple of that size.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reinterpret(types.Constant(np.uint8([[1, 0, 2, 0]])), dtype=types.UINT16)
    >>> pipe().run()[0].at(0).tolist()
    [[1, 2]]
    """

    dtype = Arg(DALIDataType, None, "Type of the output. By default that of the input.")

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        return super().outputs(a, x, *more).like(dtype=a.dtype and to_numpy(a.dtype))

    def _volume(self, a: Arguments, x: Spec) -> np.ndarray:
        if a.dtype is None:
            return x.shape.prod(axis=1)
        nbytes, size = x.shape.prod(axis=1) * x.dtype.itemsize, to_numpy(a.dtype).itemsize
        bad = nbytes % size != 0
        SampleErrors.where(bad, lambda i: f"{nbytes[i]} bytes are no multiple of the {size} bytes of an element")
        return nbytes // size

    def _shape(self, a: Arguments, x: Spec, *more: Spec) -> np.ndarray:
        if a.dtype is None or more or any(v is not None for v in (a.shape, a.rel_shape, a.src_dims)):
            return super()._shape(a, x, *more)
        dtype = to_numpy(a.dtype)
        if not x.ndim:
            if dtype.itemsize != x.dtype.itemsize:
                raise ValueError(f"a scalar of type {x.dtype.name} can't become one of {dtype.name}, of another size")
            return x.shape
        shape = x.shape.copy()
        nbytes = shape[:, -1] * x.dtype.itemsize
        SampleErrors.where(
            nbytes % dtype.itemsize != 0,
            lambda i: (
                f"the last axis of {x.shape[i].tolist()} has {nbytes[i]} bytes, no multiple of the "
                f"{dtype.itemsize} bytes of {dtype.name}"
            ),
        )
        shape[:, -1] = nbytes // dtype.itemsize
        return shape
