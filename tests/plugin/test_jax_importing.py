# SPDX-License-Identifier: Apache-2.0
"""Arrays imported by the fast path are the same as those of JAX's public function."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from penstock.plugin.jax import importing  # noqa: E402


def aligned(shape, dtype):
    """Numbers in memory that JAX can use without a copy."""
    n = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(n + 64, "u1")
    begin = -memory.ctypes.data % 64
    array = memory[begin : begin + n].view(dtype).reshape(shape)
    array[...] = np.arange(array.size).reshape(shape) % 2
    return array


@pytest.fixture(params=["direct", "public"])
def way(request, monkeypatch):
    """Either path, whichever jaxlib is installed."""
    monkeypatch.setattr(importing, "_usable", None)
    if request.param == "public":
        monkeypatch.setattr(importing, "_made", None)
    elif not importing._try():
        pytest.skip("this jaxlib is not known")
    return request.param


@pytest.mark.parametrize("dtype", ["u1", "i2", "i4", "f2", "f4", "?", "i8", "f8"])
def test_same_as_public(way, dtype):
    x = aligned((2, 8, 8, 3), dtype)
    one, other = importing.from_dlpack(x), jax.dlpack.from_dlpack(x)
    assert one.dtype == other.dtype and one.shape == other.shape and one.weak_type == other.weak_type
    assert one.devices() == other.devices() and one.committed == other.committed
    assert (np.asarray(one) == x).all()
    if x.dtype.itemsize < 8:
        assert one.unsafe_buffer_pointer() == other.unsafe_buffer_pointer() == x.ctypes.data


def test_memory_lives_as_long_as_the_array(way):
    x = aligned((4, 16), "f4")
    expected, array = x.copy(), importing.from_dlpack(x)
    del x
    spoil = [np.full(96, 7, "f4") for _ in range(64)]  # takes its place if it was freed
    assert (np.asarray(array) == expected).all() and len(spoil) == 64


@pytest.mark.parametrize(
    "made",
    [
        lambda *a: (_ for _ in ()).throw(TypeError("incompatible function arguments")),
        lambda capsule, *a: jax.numpy.zeros((2, 256), "i4"),
    ],
    ids=["refuses", "means something else"],
)
def test_a_jaxlib_that_has_changed(monkeypatch, made):
    monkeypatch.setattr(importing, "_usable", None)
    monkeypatch.setattr(importing, "_made", made)
    x = aligned((2, 32), "f4")
    array = importing.from_dlpack(x)
    assert importing._usable is False
    assert (np.asarray(array) == x).all() and array.unsafe_buffer_pointer() == x.ctypes.data
