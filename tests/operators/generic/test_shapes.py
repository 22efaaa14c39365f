# SPDX-License-Identifier: Apache-2.0
import warnings

import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, dtype=None, type=None):
    return np.array(x.shape, types.to_numpy_type(dtype or type or types.INT64))


TestShapes = op_test(
    "shapes",
    reference,
    ("u1", "f4", "?"),
    ("HWC", "FHWC", ""),
    args=[{}, *({"dtype": t} for t in (types.INT32, types.UINT32, types.UINT64, types.FLOAT, types.FLOAT64))],
    errors=[({"dtype": types.UINT8}, ValueError, "dtype takes int32, .*; got uint8")],
)


def test_scalars_have_no_axes():
    pipe = pipeline_def(lambda: fn.shapes(types.Constant(5)), batch_size=1)()
    assert pipe.run()[0].at(0).shape == (0,)


def test_a_node_tells_its_shape():
    @pipeline_def(batch_size=1)
    def pipe():
        x = types.Constant(np.zeros((2, 3), "u1"))
        return x.shape(), x.shape(dtype=types.INT32)

    default, small = pipe().run()
    assert default.at(0).tolist() == small.at(0).tolist() == [2, 3]
    assert default.dtype == types.INT64 and small.dtype == types.INT32


def test_the_function_is_deprecated_and_the_method_is_not():
    with pytest.warns(DeprecationWarning, match=r"fn\.shapes is deprecated; use shape\(\)"):
        pipeline_def(lambda: fn.shapes(types.Constant(5)), batch_size=1)()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline_def(lambda: fn.constant(idata=[1]).shape(), batch_size=1)()
