# SPDX-License-Identifier: Apache-2.0
"""Operators that only move memory: partial ends, unaligned positions, empty samples, single elements."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

RNG = np.random.default_rng(11)
OFFSETS = (0, 1, 3, 6)  # elements


def values(shape, dtype):
    return RNG.integers(0, 200, shape).astype(dtype)


def joined(shapes, axis, dtype="u1", offsets=OFFSETS):
    """`shapes`: one a sample of those of the inputs."""
    inputs = {k + 1: [values(s[k], dtype) for s in shapes] for k in range(len(shapes[0]))}
    specs = {k: Spec(np.array([x.shape for x in v], "i8"), np.dtype(dtype)) for k, v in inputs.items()}
    ndim = len(shapes[0][0])
    out = [np.concatenate(s, axis=axis) if axis < ndim else np.stack(s, axis) for s in zip(*inputs.values())]
    specs[0] = Spec(np.array([x.shape for x in out], "i8"), np.dtype(dtype))
    return Segment(
        [Step("generic/cat", [0], [*inputs], {"inputs": len(inputs), "axis": axis})], specs, inputs, {0}
    ), out


def chosen(segment):
    """The device functions of the launches."""
    return {x.source.rsplit("{ ", 1)[1].split("<")[0] for x in segment.launches()[1]}


def check(segment, want, form, offsets=OFFSETS):
    assert chosen(segment) == {form}
    for offset in offsets:
        got = segment.on_device(offset)[0]
        for i, (a, b) in enumerate(zip(got, want)):
            np.testing.assert_array_equal(a, b, err_msg=f"sample {i} of shape {b.shape}, offset {offset}")


ROWS = [((5, 29, 3), (4, 29, 3)), ((1, 1, 3), (2, 1, 3)), ((0, 7, 3), (0, 7, 3)), ((17, 33, 3), (16, 33, 3))]
LONG = [((1, 15000), (1, 15003)), ((1, 7), (1, 15)), ((1, 16), (1, 17))]
COLUMNS = [tuple((h, w + k, 3) for k in range(3)) for h, w in ((9, 40), (3, 0), (1, 31), (2, 77))]


@pytest.mark.parametrize("dtype", ("u1", "i2", "f4", "f8", "?"))
@pytest.mark.parametrize("shapes, axis", [(ROWS, 0), (COLUMNS, 1), (LONG, 1), (LONG[:1], 0)])
def test_long_pieces(shapes, axis, dtype):
    if axis == 0 and shapes is not ROWS:
        shapes = [((3, 40), (1, 40)), ((1, 80), (2, 80))]
    check(*joined(shapes, axis, dtype), "cat_segments")


def test_ends_of_long_pieces():
    lengths = [*range(1, 36), 47, 48, 49, 63, 64, 65]
    check(*joined([((n,), (131 - n % 16,)) for n in lengths], 0), "cat_segments", range(17))


WOVEN = [(3, 3), (1, 1), (3, 1), (4, 4), (1, 2, 3), (1,) * 7, (5, 4), (13, 3), (31,), (2,)]


@pytest.mark.parametrize(
    "pieces, dtype", [(p, "u1") for p in WOVEN] + [((3, 3), "f4"), ((1, 2, 3), "i2"), ((2, 1), "f8"), ((1,) * 7, "f4")]
)
def test_short_pieces(pieces, dtype):
    sizes = ((1, 1), (5, 7), (0, 3), (11, 33), (1, 8), (2, 8), (3, 31))
    shapes = [tuple((h, w, p) for p in pieces) for h, w in sizes]
    check(*joined(shapes, 2, dtype), "cat_interleaved")


@pytest.mark.parametrize("count, dtype", [(1, "i4"), (2, "u1"), (2, "u2"), (3, "f4"), (4, "f8")])
def test_elements_stacked(count, dtype):
    check(*joined([((h, w),) * count for h, w in ((1, 1), (9, 13), (0, 4), (64, 65))], 2, dtype), "cat_interleaved")


@pytest.mark.parametrize("dtype", ("u1", "f4"))
def test_short_pieces_of_several_sizes(dtype):
    shapes = [tuple((h, w, (c + k) % 7) for k in range(3)) for h, w, c in ((5, 7, 0), (1, 1, 3), (9, 4, 5))]
    check(*joined(shapes, 2, dtype), "cat_all")


def rearranged(shape, orders, dtype):
    videos = [values((9, *shape), dtype) for _ in orders]
    order = np.zeros((len(orders), max(map(len, orders))), "i4")
    for row, o in zip(order, orders):
        row[: len(o)] = o
    out = [x[o] for x, o in zip(videos, orders)]
    specs = {k: Spec(np.array([x.shape for x in v], "i8"), np.dtype(dtype)) for k, v in enumerate((out, videos))}
    columns = {"order": order, "count": np.array([len(o) for o in orders])}
    return Segment([Step("generic/frames", [0], [1], columns)], specs, {1: videos}, {0}), out


ORDERS = ([0], [8, 7, 0, 0, 3], [5, 5, 4], [*range(9)] * 4)


@pytest.mark.parametrize("dtype", ("u1", "i2", "f4", "f8"))
@pytest.mark.parametrize("shape", ((64,), (5, 13), (33, 31, 3), (16, 16), (3, 150, 3)), ids=str)
def test_large_frames(shape, dtype):
    check(*rearranged(shape, ORDERS, dtype), "frames_segments")


@pytest.mark.parametrize("shape", ((1,), (3, 5), (7,), (2, 2)), ids=str)
def test_small_frames(shape):
    check(*rearranged(shape, ORDERS, "u1"), "frames_all")


def typical():
    """Very different launches, for the real compiler."""
    for pieces, dtype in (((3, 3), "u1"), ((1,) * 7, "i2"), ((2, 1), "f8")):
        yield joined([tuple((5, 7, p) for p in pieces)], 2, dtype)[0]
    for dtype in ("u1", "f8"):
        yield joined(ROWS, 0, dtype)[0]
    yield rearranged((33, 31), ORDERS, "i2")[0]
    yield joined([tuple((9, w, 3) for w in range(40, 47))], 1, "f4")[0]
