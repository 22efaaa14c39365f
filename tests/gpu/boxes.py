# SPDX-License-Identifier: Apache-2.0
"""Typical launches of the kernels of boxes, points and classes."""

import numpy as np
from segments import Segment, Step

from penstock.core.batch import Spec


def segments():
    boxes, points = (Spec.uniform(2, (5, k), np.dtype("f4")) for k in (4, 3))
    yield Segment([Step("bbox/bb_flip", [1], [0], {"horizontal": 1})], {0: boxes, 1: boxes}, {}, {1})
    yield Segment([Step("coord/coord_flip", [1], [0], {})], {0: points, 1: points}, {}, {1})
    for dtype, of, rows in (("f4", "f4", 3), ("u1", "f4", 2), ("f4", "i2", 4)):
        specs = {0: Spec.uniform(2, (5, 3), np.dtype(dtype)), 1: Spec.uniform(2, (5, rows), np.dtype(of))}
        yield Segment([Step("coord/coord_transform", [1], [0], {})], specs, {}, {1})
    classes, anchors = (Spec.uniform(2, (k,), np.dtype("i4")) for k in (5, 9))
    specs = {0: boxes, 1: classes, 2: Spec.uniform(2, (9, 4), np.dtype("f4")), 3: anchors}
    yield Segment([Step("bbox/box_encoder", [2, 3], [0, 1], {"n_anchors": 9})], specs, {}, {2, 3})
    for dtype, of in (("u1", "f4"), ("i8", "u1"), ("f2", "f2")):
        specs = {0: Spec.uniform(2, (5,), np.dtype(dtype)), 1: Spec.uniform(2, (5, 7), np.dtype(of))}
        yield Segment([Step("generic/one_hot", [1], [0], {"inner": 1, "classes": 7})], specs, {}, {1})
