# SPDX-License-Identifier: Apache-2.0
"""Selects polygons of masks."""

from __future__ import annotations

import ctypes

import numpy as np

from ...core import kernels
from ...core.batch import Batch, Buffer, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator
from ...core.rows import TENSOR, allocate

_INT32, _INT64 = np.dtype("i4"), np.dtype("i8")
_INPUTS = (("mask ids (input 0)", 1, _INT32), ("polygons (input 1)", 2, _INT32), ("vertices (input 2)", 2, None))


class SelectMasks(Operator):
    """Selects the polygons that belong to given masks, and their vertices.

    Inputs: ids of masks, int32 (masks,), without repetition; polygons, int32 (polygons, 3), each as (id of its mask,
    index of its first vertex, index after its last vertex); and vertices of any type (vertices, coordinates). Outputs:
    the polygons of these masks, in the order of the ids, and their vertices, concatenated; the indices in the polygons
    refer to them. A mask may have several polygons.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     polygons = types.Constant(np.int32([[7, 0, 3], [8, 3, 6], [9, 6, 9]]))
    ...     vertices = types.Constant(np.arange(18, dtype=np.float32).reshape(9, 2))
    ...     return fn.segmentation.select_masks(np.int32([9]), polygons, vertices, reindex_masks=True)
    >>> [x.at(0).tolist() for x in pipe().run()]
    [[[0, 0, 3]], [[12.0, 13.0], [14.0, 15.0], [16.0, 17.0]]]
    """

    module = "segmentation"
    inputs = (3, 3)
    by_frame = False
    is_prompt = True
    reindex_masks = Arg(bool, False, "Whether to replace a polygon's id by the index of its mask among the ids.")

    def n_outputs(self) -> int:
        return 2

    def run(self, a: Arguments, ids: Batch, polygons: Batch, vertices: Batch) -> tuple[Batch, Batch]:
        for x, what in zip((ids, polygons, vertices), _INPUTS):
            _check(x.spec, *what)
        library, n = kernels.library(), a.n
        rows, at = allocate(2 * n, TENSOR)
        shapes, shapes_at = allocate((2, n, 2), _INT64)
        inputs = ids.rows_address, polygons.rows_address, vertices.rows_address, n, self.values["reindex_masks"]
        needed = library.select_masks_room(*inputs[1:4])
        memory = None
        # If polygons share vertices, the output may have more vertices than the input and needs a second attempt.
        while memory is None or needed > memory.nbytes:
            memory = Buffer(needed)
            needed = library.select_masks(*inputs, memory.address, memory.nbytes, at, shapes_at, None)
        if needed < 0:
            errors = ctypes.create_string_buffer(kernels.ERROR_SIZE * n)
            library.select_masks(*inputs, memory.address, memory.nbytes, at, shapes_at, errors)
            texts = (errors.raw[kernels.ERROR_SIZE * i : kernels.ERROR_SIZE * (i + 1)] for i in range(n))
            reasons = {i: t.split(b"\0")[0].decode("utf-8", "replace") for i, t in enumerate(texts)}
            raise SampleErrors({i: text for i, text in reasons.items() if text})
        chosen = Batch(Spec(shapes[0], _INT32), rows[:n], (memory,))
        return chosen, Batch(Spec(shapes[1], vertices.spec.dtype), rows[n:], (memory,))


def _check(x: Spec, what: str, ndim: int, dtype: np.dtype | None) -> None:
    if dtype is not None and x.dtype != dtype:
        raise ValueError(f"{what} must be {dtype.name}, got {x.dtype.name}; fn.cast them")
    if x.ndim != ndim:
        raise ValueError(f"{what} must have {ndim} dimension{'s' * (ndim > 1)}, got {x.ndim}")
