# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, axes, new_axis_names=""):
    return np.expand_dims(x, tuple(axes)) if axes else x


TestExpandDims = op_test(
    "expand_dims",
    reference,
    dtypes=("u1", "f4", "i8"),
    args=[
        {"axes": [0]},
        {"axes": [3]},
        {"axes": [1, 3]},
        {"axes": [4, 0], "new_axis_names": "XN"},
        {"axes": [2], "new_axis_names": "D"},
        {"axes": [0, 1, 2]},
        {"axes": []},
    ],
    errors=[
        ({"axes": [0, 0]}, ValueError, "an index twice"),
        ({"axes": [-1]}, ValueError, "from 0 on; got -1"),
        ({"axes": [5]}, RuntimeError, "accepted are 0 to 3"),
        ({"axes": [0], "new_axis_names": "AB"}, ValueError, "1 axes, but 2 new_axis_names"),
    ],
)


@pytest.mark.parametrize(
    "layout, kwargs, expected",
    [
        ("HW", {"axes": [0]}, ""),
        ("HW", {"axes": [0, 2], "new_axis_names": "FC"}, "FHCW"),
        ("HW", {"axes": [2, 0], "new_axis_names": "CF"}, "FHCW"),
        ("HW", {"axes": []}, "HW"),
    ],
)
def test_layout(layout, kwargs, expected):
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.expand_dims(types.Constant(np.zeros((2, 3), "u1"), layout=layout), **kwargs)

    assert pipe().run()[0].layout() == expected


def test_names_need_a_layout_or_a_scalar():
    scalar = pipeline_def(lambda: fn.expand_dims(types.Constant(1), axes=[0], new_axis_names="F"), batch_size=1)
    assert scalar().run()[0].layout() == "F"
    vector = pipeline_def(lambda: fn.expand_dims(types.Constant([1]), axes=[0], new_axis_names="F"), batch_size=1)
    with pytest.raises(RuntimeError, match="needs an input with a layout"):
        vector().run()
