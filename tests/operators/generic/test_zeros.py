# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT64, types.FLOAT16, types.FLOAT, types.FLOAT64, types.BOOL])
@pytest.mark.parametrize("shape, layout", [([2, 3], "HW"), ([], ""), ([0, 4], ""), ([7, 1, 5], None)])
def test_values(dtype, shape, layout):
    (out,) = pipeline_def(lambda: fn.zeros(shape=shape, dtype=dtype, layout=layout), batch_size=3)().run()
    for i in range(3):
        want = np.zeros(shape, types.to_numpy_type(dtype))
        assert out.at(i).dtype == want.dtype
        np.testing.assert_array_equal(out.at(i), want)
    assert out.layout() == (layout or "")


def test_defaults_and_shapes_that_differ():
    shapes = [np.int32(s) for s in ([2, 3], [0, 5], [70, 1])]

    @pipeline_def(batch_size=3)
    def pipe():
        return fn.zeros(), fn.zeros(shape=fn.external_source(source=lambda i: shapes)), fn.zeros(shape=4)

    scalar, ragged, vector = pipe().run()
    assert scalar.at(0).shape == () and scalar.at(0) == 0 and scalar.dtype == types.INT32
    for got, shape in zip(ragged, shapes):
        np.testing.assert_array_equal(got, np.zeros(shape, "i4"))
    assert vector.at(0).tolist() == [0] * 4


def test_outputs_are_the_users_own():
    pipe = pipeline_def(lambda: fn.zeros(shape=[3]), batch_size=2)()
    first = pipe.run()[0].as_array()
    first[...] = 9
    assert (pipe.run()[0].as_array() == 0).all() and (first == 9).all()


@pytest.mark.parametrize(
    "kwargs, text", [({"shape": [-1]}, "can't be negative"), ({"shape": [2], "layout": "HW"}, "2 names")]
)
def test_errors(kwargs, text):
    with pytest.raises(RuntimeError, match=text):
        pipeline_def(lambda: fn.zeros(**kwargs), batch_size=1)().run()
