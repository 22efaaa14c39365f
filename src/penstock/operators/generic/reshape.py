# SPDX-License-Identifier: Apache-2.0
"""Changes the shape or layout without copying."""

import numpy as np

from ...core.axes import rows_of
from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout, Operator, PerSample


class Reshape(Operator):
    """Changes the shape or layout of samples. Nothing is copied.

    The shape is given by `shape` (or a second input of integers), or by `rel_shape`: factors of the input's extents,
    whose products are rounded. One extent may be negative; it is inferred from the others. `src_dims` gives for each
    axis of the output the axis of the input whose extent it takes; -1 inserts an axis of extent 1. The layout is kept
    if the number of axes is, and removed otherwise.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.reshape(types.Constant(np.zeros((4, 6, 3), np.uint8)), rel_shape=[0.5, -1], layout="FH")
    >>> pipe().run()[0].at(0).shape
    (2, 36)
    """

    inputs = (1, 2)
    peeks = (1,)
    by_frame = False
    aliases = True

    shape = PerSample([int], None, "Extents of the output. One may be negative: it is inferred.")
    rel_shape = PerSample([float], None, "Extents of the output, as multiples of the input's.")
    src_dims = PerSample([int], None, "Axes of the input that give the extents; -1 is a new axis of extent 1.")
    layout = Arg(Layout, None, "Layout of the output.")

    def setup(self) -> None:
        if {"shape", "rel_shape"} <= self.given:
            raise ValueError("give either `shape` or `rel_shape`, not both")
        if self.values["rel_shape"] == []:
            raise ValueError("`rel_shape` is empty")
        shape = self.values["shape"]
        if shape is not None and sum(extent < 0 for extent in shape) > 1:
            raise ValueError(f"only one extent may be negative, got {shape}")

    def outputs(self, a: Arguments, x: Spec, *more: Spec) -> Spec:
        shape = _completed(self._shape(a, x, *more), x, self._volume(a, x))
        layout = x.layout if shape.shape[1] == x.ndim else ""
        if a.layout is not None:
            if len(a.layout) not in (0, shape.shape[1]):
                raise ValueError(f"layout='{a.layout}' does not fit an output of {shape.shape[1]} axes")
            layout = str(a.layout)
        return x.like(shape=shape, layout=layout)

    def _volume(self, a: Arguments, x: Spec) -> np.ndarray:
        """Number (n,) of elements of the output."""
        return x.shape.prod(axis=1)

    def _shape(self, a: Arguments, x: Spec, *more: Spec) -> np.ndarray:
        """Shapes (n, ndim); a negative extent is to be inferred."""
        if more:
            if a.shape is not None or a.rel_shape is not None:
                raise ValueError("give the shape either as the second input or as an argument, not both")
            batch = a.peeked(1)
            if more[0].ndim != 1 or not batch.spec.is_dense or batch.spec.dtype.kind not in "iu":
                raise ValueError(
                    "input 1 needs shapes: vectors of integers of one length; "
                    f"got {more[0].dtype.name} of shapes {more[0].shape.tolist()[:4]}"
                )
            shapes = batch.array().astype("i8")
            return shapes.reshape(x.n, shapes.shape[1])
        if a.shape is not None:
            return a.shape.astype("i8")
        if a.src_dims is None and a.rel_shape is None:
            if a.layout is None:
                raise ValueError("nothing to do: give `shape`, `rel_shape`, `src_dims`, `layout` or a second input")
            return x.shape
        extent = x.shape
        if a.src_dims is not None:
            SampleErrors.where(
                ((a.src_dims < -1) | (a.src_dims >= x.ndim)).any(axis=1),
                lambda i: f"src_dims {a.src_dims[i].tolist()} are neither axes of the input, 0 to {x.ndim - 1}, nor -1",
            )
            padded = np.concatenate([x.shape, np.ones((x.n, 1), "i8")], axis=1)  # index -1 gives a new axis of extent 1
            extent = padded[rows_of(x), a.src_dims]
        if a.rel_shape is None:
            return extent
        count, factors = a.rel_shape.shape[1], a.rel_shape
        if a.src_dims is not None and count != extent.shape[1]:
            raise ValueError(f"`src_dims` has {extent.shape[1]} values and `rel_shape` {count}")
        if count == x.ndim + 1 and a.src_dims is None and (factors[:, -1] < 0).all():
            extent = np.concatenate([extent, np.ones((x.n, 1), "i8")], axis=1)
        elif count > extent.shape[1]:
            raise ValueError(f"`rel_shape` has {count} values, the input {x.ndim} axes; use `src_dims` to add axes")
        return np.where(
            factors < 0, -1, np.floor(factors * extent[:, :count].astype("f4") + np.float32(0.5)).astype("i8")
        )


def _completed(shape: np.ndarray, x: Spec, volume: np.ndarray) -> np.ndarray:
    """Replaces the negative extent. Raises SampleErrors if the volume differs."""
    unknown = shape < 0
    SampleErrors.where(unknown.sum(axis=1) > 1, lambda i: f"only one extent may be negative, got {shape[i].tolist()}")
    known = np.where(unknown, 1, shape).prod(axis=1)
    left = np.where(known > 0, volume // np.maximum(known, 1), 0)
    out = np.where(unknown, left[:, None], shape)
    SampleErrors.where(
        out.prod(axis=1) != volume,
        lambda i: f"an input of shape {x.shape[i].tolist()} ({volume[i]} elements) can't become {shape[i].tolist()}",
    )
    return out
