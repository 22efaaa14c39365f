# SPDX-License-Identifier: Apache-2.0
"""Typical launches of kernels that read at computed positions."""

import numpy as np
from segments import Segment, Step

from penstock.core.batch import Spec

SHAPES = {"HW": (5, 6), "HWC": (5, 6, 3), "CHW": (3, 5, 6)}


def segments():
    for dtype, layout in (("u1", "HWC"), ("i2", "CHW"), ("f4", "HW")):
        image = Spec.uniform(2, SHAPES[layout], np.dtype(dtype), layout)
        yield Segment([Step("geometry/displace", [1], [0], {"planar": layout != "HWC"})], {0: image, 1: image}, {}, {1})
    for kind, dtype in ((1, "u1"), (2, "f4"), (3, "u1"), (4, "u1")):  # in rows
        image = Spec.uniform(2, (5, 60, 3), np.dtype(dtype), "HWC")
        yield Segment([Step("geometry/displace", [1], [0], {"kind": kind})], {0: image, 1: image}, {}, {1})
    mosaic, image = (Spec.uniform(2, (6, 60, 3)[:k], np.dtype("u1"), "HWC"[:k]) for k in (2, 3))
    yield Segment([Step("color/debayer", [1], [0], {})], {0: mosaic, 1: image}, {}, {1})
    for dtype, channels in (("u1", 3), ("u2", 1), ("f4", 6)):
        image = Spec.uniform(2, (5, 6, channels), np.dtype(dtype), "HWC")
        specs = {0: image, 1: image, **dict.fromkeys((2, 3), Spec.uniform(2, (5, 6), np.dtype("f4"), "HW"))}
        yield Segment([Step("geometry/remap", [1], [0, 2, 3], {})], specs, {}, {1})
    for dtype, of in (("u1", 0), ("f4", 0), ("u1", 9), ("i2", 6)):
        canvas = Spec.uniform(2, (5, 6, 3), np.dtype(dtype), "HWC")
        yield Segment([Step("geometry/multi_paste", [0], [], {"dtype": of})], {0: canvas}, {}, {0})
