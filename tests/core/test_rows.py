# SPDX-License-Identifier: Apache-2.0
import sys

import numpy as np
import pytest

from penstock.core import rows
from penstock.core.rows import TENSOR, address, allocate, copied, indices, reserve


class Named(np.ndarray):
    pass


def read_only():
    array = np.arange(6.0)
    array.setflags(write=False)
    return array


ARRAYS = {
    "whole": lambda: np.zeros((3, 4), "f4"),
    "part": lambda: np.zeros((5, 4), "i8")[2:],
    "odd": lambda: np.zeros(64, "u1")[3:],
    "backwards": lambda: np.arange(9)[::-1],
    "scalar": lambda: np.array(3.0),
    "element": lambda: np.arange(9)[4, ...],
    "empty": lambda: np.zeros((0, 3)),
    "records": lambda: np.zeros(3, TENSOR),
    "field": lambda: np.zeros(3, TENSOR)["shape"],
    "read-only": read_only,
    "bytes": lambda: np.frombuffer(b"some text", "u1"),
    "subclass": lambda: np.zeros(4).view(Named),
    "objects": lambda: np.array([None, "x"], object),
}


@pytest.mark.parametrize("kind", ARRAYS)
def test_address_is_that_of_the_first_element(kind):
    array = ARRAYS[kind]()
    assert address(array) == array.__array_interface__["data"][0] == array.ctypes.data


def test_address_of_a_mapped_file(tmp_path):
    array = np.memmap(tmp_path / "file", "u1", "w+", shape=100)
    assert address(array[10:]) == array.ctypes.data + 10


@pytest.mark.parametrize("make", [allocate, reserve])
@pytest.mark.parametrize("shape", [0, 7, (3, 5), (2, 0), (3000, 9)])
@pytest.mark.parametrize("dtype", ["u1", "f8", TENSOR])
def test_memory_and_its_address(make, shape, dtype):
    array, at = make(shape, np.dtype(dtype))
    assert at == array.ctypes.data
    assert array.shape == np.empty(shape).shape and array.dtype == np.dtype(dtype)
    if make is allocate:
        assert array.tobytes() == bytes(array.nbytes)
    array[...] = 1
    assert at % 8 == 0


@pytest.mark.parametrize("shape", [(3, 2), (0, 3), (1000, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_copies(shape, order):
    array = np.asarray(np.random.default_rng(0).integers(-9, 9, shape), order=order)
    copy = copied(array)
    assert copy.dtype == array.dtype and copy.flags.c_contiguous and not copy.flags.writeable
    np.testing.assert_array_equal(copy, array)
    before = array.copy()
    array[...] += 1
    np.testing.assert_array_equal(copy, before)


def test_indices_are_shared():
    assert indices(5).tolist() == [0, 1, 2, 3, 4] and indices(5) is indices(5)
    with pytest.raises(ValueError, match="read-only"):
        indices(5)[0] = 7


def test_where_arrays_lie_elsewhere_they_are_asked(monkeypatch):
    assert rows._is_where_it_says()
    monkeypatch.setattr(rows, "HEAD", rows.HEAD + 8)
    assert not rows._is_where_it_says()
    monkeypatch.undo()
    monkeypatch.setattr(sys.implementation, "name", "another")
    assert not rows._is_where_it_says()
