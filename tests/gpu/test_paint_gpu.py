# SPDX-License-Identifier: Apache-2.0
"""Kernels that paint: tables, noise, erased regions, grids."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

NOISE = {"key": 1, "position": 2, "epoch": 0}
REGION = {"begin": np.zeros((1, 3), "i8"), "end": np.ones((1, 3), "i8"), "fill": np.ones((1, 3), "f4"), "regions": 1}
GRID = {"cosine": 0.1, "sine": 0.1, "ratio": 0.5, "y_axis": 0, "x_axis": 1}


def segment(kernel, columns, dtype, to=None, layout="HWC", shape=(5, 6, 3)):
    of, to = np.dtype(dtype), np.dtype(to or dtype)
    specs = {0: Spec.uniform(2, shape, of, layout), 1: Spec.uniform(2, shape, to, layout)}
    return Segment([Step(kernel, [1], [0], columns)], specs, {}, {1})


def segments():
    for dtype in ("u1", "u4", "i8", "f4"):
        yield segment("noise/gaussian", {**NOISE, "stddev": 1.0}, dtype)
        yield segment("noise/shot", {**NOISE, "factor": 2.0}, dtype)
        yield segment("noise/salt_and_pepper", {**NOISE, "channels": 1}, dtype)
        yield segment("noise/salt_and_pepper", {**NOISE, "channels": 3, "inner": 1}, dtype)
    table = {"table": np.zeros((1, 64), "u1"), "size": 2}
    for dtype, to in (("u1", "u1"), ("u1", "f4"), ("i8", "f2"), ("i4", "f8"), ("i2", "?")):
        yield segment("color/lookup_table", table, dtype, to)
    for dtype, layout, shape in (("u1", "HWC", (5, 6, 3)), ("f4", "CHW", (3, 5, 6)), ("f2", "HWC", (5, 6, 9))):
        yield segment("geometry/erase", {**REGION, "channels": layout.index("C")}, dtype, None, layout, shape)
    yield segment("color/grid_mask", GRID, "u1")
    yield segment("color/grid_mask", {**GRID, "y_axis": 1, "x_axis": 2}, "f4", None, "CHW", (3, 5, 6))
    yield segment("color/grid_mask", GRID, "i2", None, "HW", (5, 6))


@pytest.mark.parametrize(
    "dtype, layout, shape, channels",
    [
        ("u1", "HWC", (5, 37, 3), -1),
        ("u1", "HWC", (9, 21, 3), 2),
        ("i2", "HWC", (6, 9, 2), 2),
        ("f4", "HWC", (5, 6, 9), 2),
        ("u1", "CHW", (3, 5, 40), 0),
        ("i8", "FHWC", (2, 4, 5, 3), 3),
        ("f2", "", (70,), -1),
    ],
)
def test_erased_regions_along_all_axes(dtype, layout, shape, channels):
    rng = np.random.default_rng(3)
    n, regions = 3, 4
    begin = rng.integers(-3, shape, (n, regions, len(shape)))
    end = begin + rng.integers(0, shape, (n, regions, len(shape)))
    columns = {
        "begin": begin.reshape(n, -1),
        "end": end.reshape(n, -1),
        "regions": regions,
        "channels": channels,
        "fill": rng.integers(1, 99, (n, 9)).astype("f4"),
    }
    spec = Spec.uniform(n, shape, np.dtype(dtype), layout)
    samples = [rng.integers(0, 100, shape).astype(dtype) for _ in range(n)]
    step = Step("geometry/erase", [1], [0], columns)
    Segment([step], {0: spec, 1: spec}, {0: samples}, {1}).check(offsets=(0, 1))


@pytest.mark.parametrize(
    "dtype, layout, shape", [("u1", "HWC", (9, 37, 3)), ("f4", "CHW", (3, 5, 21)), ("i2", "HW", (7, 50)),
                             ("u1", "HWC", (4, 5, 7)), ("i4", "HWC", (4, 9, 4))]
)  # fmt: skip
def test_grids(dtype, layout, shape):
    rng = np.random.default_rng(3)
    y = layout.index("H")
    columns = {"cosine": 0.11, "sine": 0.05, "left": 0.3, "top": 0.1, "ratio": 0.6, "first_y": 2, "first_x": 3}
    spec = Spec.uniform(2, shape, np.dtype(dtype), layout)
    samples = [rng.integers(1, 100, shape).astype(dtype) for _ in range(2)]
    step = Step("color/grid_mask", [1], [0], {**columns, "y_axis": y, "x_axis": y + 1})
    Segment([step], {0: spec, 1: spec}, {0: samples}, {1}).check(offsets=(0, 1))
