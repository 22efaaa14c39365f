# SPDX-License-Identifier: Apache-2.0
"""Polygons of chosen masks."""

from __future__ import annotations

import numpy as np

from ...core import each_sample
from ...core.batch import Batch, Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Operator

_INT32, _INT64 = np.dtype("i4"), np.dtype("i8")


class SelectMasks(Operator):
    """Selects the polygons that belong to certain masks, and their vertices.

    Inputs are ids of masks, int32 (masks,), each once; polygons, int32 (polygons, 3), each as (id of its mask, first
    vertex, the vertex behind its last); and vertices of any type (vertices, coordinates). Outputs are the polygons of
    these masks, in the order of the ids, and their vertices one polygon after the other, to which the polygons now
    refer. A mask may have several polygons.

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
    frames = False
    reindex_masks = Arg(bool, False, "Whether a polygon's id becomes the place of its mask among the ids.")

    def n_outputs(self) -> int:
        return 2

    def run(self, a: Arguments, ids: Batch, polygons: Batch, vertices: Batch) -> tuple[Batch, Batch]:
        _check(ids.spec, polygons.spec, vertices.spec)
        shape = polygons.spec.shape.copy()
        shape[:, 1] = 3
        chosen = Batch.allocate(Spec(shape, _INT32))
        counted = Batch.allocate(Spec.uniform(a.n, (2,), _INT64))
        room = vertices.spec
        # Where polygons share vertices there may be more of them than before: then there is a second round.
        for _ in range(2):
            kept = Batch.allocate(room.like(layout=""))
            columns = {"reindex": self.values["reindex_masks"]}
            each_sample.run(a, "segmentation/select_masks", columns, [chosen, kept, counted], (ids, polygons, vertices))
            counts = counted.array()
            if (counts[:, 1] <= room.shape[:, 0]).all():
                break
            shape = room.shape.copy()
            shape[:, 0] = counts[:, 1]
            room = room.like(shape=shape)
        return each_sample.beginnings(chosen, counts[:, 0]), each_sample.beginnings(kept, counts[:, 1])


def _check(ids: Spec, polygons: Spec, vertices: Spec) -> None:
    for what, x, ndim in (
        ("mask ids (input 0)", ids, 1),
        ("polygons (input 1)", polygons, 2),
        ("vertices (input 2)", vertices, 2),
    ):
        if x is not vertices and x.dtype != _INT32:
            raise ValueError(f"{what} must be int32, got {x.dtype.name}; fn.cast them")
        if x.ndim != ndim:
            raise ValueError(f"{what} must have {ndim} dimension{'s' * (ndim > 1)}, got {x.ndim}")
    shape = polygons.shape
    bad = (shape[:, 0] > 0) & (shape[:, 1] != 3)
    SampleErrors.where(
        bad, lambda i: f"polygons (input 1) have three columns: id, begin, end; got the shape {shape[i].tolist()}"
    )
