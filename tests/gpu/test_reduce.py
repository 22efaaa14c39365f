# SPDX-License-Identifier: Apache-2.0
"""Reductions on the device against the CPU's: all ways to spread them over threads, memory that is not aligned."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

RNG = np.random.default_rng(3)
SUM, SQUARES, VARIANCE, EXTREMUM = (f"reductions/{k}" for k in ("sum", "mean_square", "variance", "extremum"))
# In runs of 1, 2, 3, 4 in turn; in parts; of other periods; strided; many parameters; few elements; nothing.
WAYS = {
    "all": ((1, 1, 1), [(40, 61, 3), (1, 1, 1), (0, 2, 3), (5, 7, 4)]),
    "pixels": ((1, 1, 0), [(40, 61, 3), (3, 1, 3), (0, 2, 3), (9, 11, 3)]),
    "pairs": ((1, 1, 0), [(40, 61, 2), (301, 2, 2)]),
    "quads": ((1, 0), [(2000, 4), (301, 4)]),
    "planes": ((0, 1, 1), [(3, 40, 61), (2, 9, 1), (1, 1, 1)]),
    "rows": ((0, 1, 0), [(3, 700, 3), (2, 1, 3)]),
    "frames": ((1, 0, 1, 0), [(2, 3, 400, 3), (3, 2, 257, 3)]),
    "ragged period": ((1, 1, 0), [(40, 61, 3), (40, 61, 1), (40, 61, 5)]),
    "strided": ((1, 0, 1), [(70, 6, 3), (1, 2, 1)]),
    "columns": ((1, 0, 0), [(19, 20, 3), (2, 40, 3)]),
    "channels": ((0, 0, 1), [(20, 30, 3), (2, 2, 1)]),
    "none": ((0, 0, 0), [(5, 4, 3)]),
}


def check(kernel, dtype, to, way, offset=0, **columns):
    reduced, shapes = WAYS[way]
    kind = np.dtype(dtype).kind
    lo, hi = (0, 0) if kind == "f" else (max(np.iinfo(dtype).min, -(2**20)), min(np.iinfo(dtype).max, 2**20))
    samples = [
        (RNG.normal(5, 3, s) if kind == "f" else RNG.integers(lo, hi, s, endpoint=True)).astype(dtype) for s in shapes
    ]
    kept = np.array([[e for e, r in zip(s, reduced) if not r] for s in shapes], "i8").reshape(len(shapes), -1)
    specs = {0: Spec(np.array(shapes), np.dtype(dtype), ""), 1: Spec(kept, np.dtype(to), "")}
    inputs, ins = {0: samples}, [0]
    if kernel == VARIANCE:
        specs[2], ins = Spec(kept, np.dtype("f4"), ""), [0, 2]
        inputs[2] = [RNG.uniform(3, 9, k).astype("f4") for k in kept]
    all_ = {"reduced": np.array([[*reduced, *(0,) * (8 - len(reduced))]], "u1"), **columns}
    segment = Segment([Step(kernel, [1], ins, all_)], specs, inputs, {1})
    for a, b in zip(segment.on_cpu()[1], segment.on_device(offset)[1]):
        assert a.dtype == b.dtype
        if a.dtype.kind == "f":
            np.testing.assert_allclose(b, a, rtol=1e-6, atol=0)
        else:
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("way", WAYS)
def test_ways(way):
    for offset in (0, 1, 7):
        check(SUM, "u1", "u8", way, offset)
    for offset in (0, 3):
        check(VARIANCE, "f4", "f4", way, offset, ddof=1, root=1)


@pytest.mark.parametrize("dtype", ("u1", "i1", "u2", "i2", "u8", "i8", "f4"))
def test_types(dtype):
    way = "ragged period" if dtype in ("i1", "f4") else "pixels"
    if dtype != "f4":
        check(SUM, dtype, f"{dtype[0]}8", way)
    check(SUM, dtype, "f4", way, is_mean=1)
    check(SQUARES, dtype, "f4", way, root=1)
    check(VARIANCE, dtype, "f4", way)
    check(EXTREMUM, dtype, dtype, way, largest=0)
    check(EXTREMUM, dtype, dtype, way, largest=1)


def test_integers_are_cut_off():
    check(SUM, "u1", "u1", "all")
    check(SUM, "i2", "i2", "rows", is_mean=1)
    check(SQUARES, "u2", "u8", "pixels")
    check(SQUARES, "i1", "i1", "pixels", root=1)


def typical():
    """For the real compiler."""
    found = []
    for kernel, dtype, to, way in (
        (SUM, "u1", "u8", "pixels"),
        (SQUARES, "i2", "f4", "columns"),
        (VARIANCE, "u1", "f4", "pixels"),
        (EXTREMUM, "u1", "u1", "planes"),
    ):
        reduced, shapes = WAYS[way]
        kept = np.array([[e for e, r in zip(s, reduced) if not r] for s in shapes], "i8").reshape(len(shapes), -1)
        specs = {0: Spec(np.array(shapes), np.dtype(dtype), ""), 1: Spec(kept, np.dtype(to), "")}
        specs[2] = Spec(kept, np.dtype("f4"), "")
        columns = {"reduced": np.array([[*reduced, *(0,) * (8 - len(reduced))]], "u1")}
        found.append(Segment([Step(kernel, [1], [0, 2] if kernel == VARIANCE else [0], columns)], specs, {}, {1}))
    return found
