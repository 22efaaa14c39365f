# SPDX-License-Identifier: Apache-2.0
"""Lists of arrays, read by the native side from the array objects."""

import numpy as np
import pytest

from penstock.core.array_rows import rows_of

RNG = np.random.default_rng(1)
DTYPES = "u1 u2 u4 u8 i1 i2 i4 i8 f2 f4 f8 ?".split()


class Derived(np.ndarray):
    pass


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("ndim", [0, 1, 3, 8])
def test_rows_say_where_the_arrays_are(dtype, ndim):
    arrays = [np.zeros(RNG.integers(0, 3, ndim), dtype) for _ in range(20)]
    arrays += [np.frombuffer(bytes(100), "u1")[:64].view(dtype)[:1].reshape((1,) * ndim)]  # read-only
    rows, at, shapes = rows_of(arrays)
    assert at == rows.ctypes.data
    assert rows["data"].tolist() == [a.ctypes.data for a in arrays]
    assert rows["shape"].tolist() == [[*a.shape, *[0] * (8 - ndim)] for a in arrays]
    assert (rows["ndim"] == ndim).all() and len(set(rows["dtype"].tolist())) == 1
    assert shapes.shape == (21, ndim) and shapes.tolist() == [list(a.shape) for a in arrays]


def test_types_have_numbers_of_their_own():
    assert len({int(rows_of([np.zeros(1, t)])[0]["dtype"][0]) for t in DTYPES}) == len(DTYPES)


@pytest.mark.parametrize(
    "other",
    [
        np.zeros((2, 4), "f4"),
        np.zeros((2, 4, 3), "f8"),
        np.zeros((2, 4, 3), ">f4"),
        np.zeros((3, 4, 2), "f4").T,
        np.zeros((2, 4, 6), "f4")[..., ::2],
        np.frombuffer(bytes(97), "u1")[1:].view("f4").reshape(2, 4, 3),
        np.zeros((2, 4, 3), "f4").view(Derived),
        np.ma.zeros((2, 4, 3), "f4"),
        [[1.0]],
        None,
        3,
    ],
    ids=lambda x: f"{type(x).__name__}-{getattr(x, 'dtype', '')}-{getattr(x, 'strides', '')}",
)
def test_others_are_left_to_who_explains_them(other):
    good = np.zeros((2, 4, 3), "f4")
    assert rows_of([good, good]) is not None
    assert rows_of([good, other]) is None and rows_of([other, good]) is None


def test_nothing_and_too_many_dimensions():
    assert rows_of([]) is None
    assert rows_of([np.zeros((1,) * 9)]) is None
    assert rows_of([np.zeros(3, "U3")]) is None and rows_of([np.zeros(3, "c16")]) is None
