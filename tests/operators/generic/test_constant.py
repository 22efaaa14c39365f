# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def run(make, batch_size=3):
    @pipeline_def(batch_size=batch_size, num_threads=1)
    def pipe():
        return make()

    return pipe().run()[0]


@pytest.mark.parametrize(
    "kwargs, want",
    [
        ({"fdata": [1.5]}, np.float32([1.5])),
        ({"fdata": [1, 2, 3, 4], "shape": [2, 2]}, np.float32([[1, 2], [3, 4]])),
        ({"idata": [1, 2]}, np.int32([1, 2])),
        ({"idata": 7, "shape": [2, 3]}, np.full((2, 3), 7, np.int32)),
        ({"idata": [200], "dtype": types.UINT8}, np.uint8([200])),
        ({"fdata": [0.5], "dtype": types.FLOAT16, "shape": [1, 1, 1], "layout": "HWC"}, np.float16([[[0.5]]])),
    ],
    ids=str,
)
def test_values(kwargs, want):
    out = run(lambda: fn.constant(**kwargs))
    assert len(out) == 3 and out.layout() == kwargs.get("layout", "")
    for i in range(3):
        assert out.at(i).dtype == want.dtype
        np.testing.assert_array_equal(out.at(i), want)


@pytest.mark.parametrize(
    "value, dtype, want",
    [
        (3, None, np.int32(3)),
        (2.5, None, np.float32(2.5)),
        ([1, 2], None, np.int32([1, 2])),
        (np.float64([1, 2]), None, np.float32([1, 2])),
        (np.int64([1, 2]), None, np.int32([1, 2])),
        (np.uint64(3), None, np.uint64(3)),  # as DALI: tests/conformance/test_scalars.py
        (np.uint64([3]), None, np.uint32([3])),
        ([300, -1, 2.5], types.UINT8, np.uint8([255, 0, 3])),
        (2.7, types.UINT8, np.uint8(2)),
        (300, types.UINT8, np.uint8(255)),
        (np.float64([1, 2]), types.FLOAT64, np.float64([1, 2])),
        (2**40, types.INT64, np.int64(2**40)),
        (np.uint8([[1]]), types.INT16, np.int16([[1]])),
        (True, types.BOOL, np.bool_(True)),
    ],
    ids=str,
)
def test_types_constant(value, dtype, want):
    out = run(lambda: types.Constant(value, dtype=dtype))
    assert out.at(1).dtype == want.dtype
    np.testing.assert_array_equal(out.at(1), want)


@pytest.mark.parametrize(
    "kwargs, text",
    [
        ({}, "exactly one of 'fdata' and 'idata'"),
        ({"fdata": [1.0], "idata": [1]}, "exactly one"),
        ({"fdata": [1.0, 2.0], "shape": [3]}, "2 values do not fill the shape"),
    ],
    ids=str,
)
def test_errors(kwargs, text):
    with pytest.raises(ValueError, match=text):
        run(lambda: fn.constant(**kwargs))


def test_a_number_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="beyond the range of int32; give its type"):
        run(lambda: types.Constant(2**40))
    with pytest.raises(ValueError, match="fn.copy: a constant beyond the range"):
        run(lambda: fn.copy(np.int64([2**40])))


def test_one_number_tells_its_type_and_gives_it_as_another():
    """`types.Constant(3).uint8()`: DALI makes a ScalarConstant of one number."""
    number = types.Constant(3)
    assert (number.value, number.dtype) == (3, types.INT32)
    assert (number.uint8().value, number.uint8().dtype) == (3, types.UINT8)
    assert [getattr(number, n)().dtype for n in ("bool", "float16", "int64")] == [
        types.BOOL,
        types.FLOAT16,
        types.INT64,
    ]
    assert types.Constant(2**40, dtype=types.INT64).float64().value == 2.0**40
    out = run(lambda: types.Constant(3).uint8() * types.Constant(np.uint8([2, 100])))
    assert out.dtype == types.UINT8 and out.at(0).tolist() == [6, 44]  # 300 modulo 256
    for several in ({"value": [1]}, {"value": 1, "shape": [2]}, {"value": 1, "device": "gpu"}):
        assert not hasattr(types.Constant(**several), "uint8")
