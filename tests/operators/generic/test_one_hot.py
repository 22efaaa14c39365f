# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test, saturate
from penstock import fn, pipeline_def, types


def reference(x, num_classes=0, axis=-1, axis_name=None, on_value=1.0, off_value=0.0, dtype=types.FLOAT):
    t = types.to_numpy_type(dtype)
    out = (np.arange(num_classes) == np.trunc(x.astype("f8"))[..., None]) & (x[..., None] > -1)
    if np.dtype(t).kind != "f":
        on_value, off_value = np.trunc(on_value), np.trunc(off_value)
    out = np.where(out, np.array(saturate(on_value, t)), np.array(saturate(off_value, t))).astype(t)
    return out if axis == -1 else np.moveaxis(out, -1, axis)


def numbers(rng, case):
    low = -2 if np.dtype(case.dtype).kind != "u" else 0
    out = [rng.integers(low, 9, s).astype(case.dtype) for s in ((5, 4), (1, 3), (0, 4), (17, 9))]
    return [o + np.array(0.25, o.dtype) if o.dtype.kind == "f" else o for o in out]


TestTypes = op_test(
    "one_hot",
    reference,
    ("u1", "i1", "i4", "u8", "i8", "f4"),
    ("HW",),
    args=[{"num_classes": 6}, {"num_classes": 6, "axis": 0}, {"num_classes": 3, "axis": 1}, {"num_classes": 0}],
    make_input=numbers,
    errors=[
        ({"axis": 3}, RuntimeError, "accepted are -1 to 2"),
        ({"axis": -2}, RuntimeError, "accepted are -1 to 2"),
        ({"axis_name": "XY"}, ValueError, "one character"),
        ({"num_classes": -1}, ValueError, "can't be negative"),
    ],
)
TestValues = op_test(
    "one_hot",
    reference,
    ("i4",),
    ("HW",),
    args=[
        {"num_classes": 5, "dtype": types.INT64},
        {"num_classes": 5, "dtype": types.UINT8, "on_value": 7.0, "off_value": 250.0},
        {"num_classes": 5, "dtype": types.UINT8, "on_value": 2.75, "off_value": 0.5},
        {"num_classes": 5, "dtype": types.INT16, "on_value": -2.75, "off_value": -0.75},
        {"num_classes": 5, "dtype": types.FLOAT, "on_value": -2.5, "off_value": 0.125, "axis_name": "C"},
        {"num_classes": 5, "dtype": types.FLOAT64, "on_value": 0.5},
    ],
    make_input=numbers,
)


@pytest.mark.parametrize(
    "shape, kwargs, expected, layout",
    [
        ((), {}, (3,), ""),
        ((1, 1), {}, (3,), ""),
        ((1,), {"axis": 0}, (3, 1), ""),
        ((), {"axis_name": "C"}, (3,), "C"),
        ((2,), {}, (2, 3), ""),
    ],
)
def test_single_elements_are_scalars(shape, kwargs, expected, layout):
    pipe = pipeline_def(lambda: fn.one_hot(types.Constant(np.ones(shape, "i4")), num_classes=3, **kwargs), batch_size=2)
    (out,) = pipe().run()
    assert out.at(1).shape == expected and out.layout() == layout
    assert (out.at(0).reshape(3, -1).T if "axis" in kwargs else out.at(0).reshape(-1, 3)).tolist()[0] == [0, 1, 0]


def test_layout():
    pipe = pipeline_def(
        lambda: fn.one_hot(types.Constant([[1, 2]], layout="HW"), num_classes=3, axis=1, axis_name="C"), batch_size=1
    )
    assert pipe().run()[0].layout() == "HCW"


def test_values_out_of_range_become_the_nearest():
    pipe = pipeline_def(
        lambda: fn.one_hot(types.Constant([0]), num_classes=2, dtype=types.UINT8, on_value=300, off_value=-3.5),
        batch_size=1,
    )
    assert pipe().run()[0].at(0).tolist() == [255, 0]


def test_type_of_the_input():
    with pytest.raises(RuntimeError, match="the input has the type bool"):
        pipeline_def(lambda: fn.one_hot(types.Constant([True, False]), num_classes=2), batch_size=1)().run()
