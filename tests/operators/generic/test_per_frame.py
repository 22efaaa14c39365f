# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, replace=False):
    return x


TestPerFrame = op_test("per_frame", reference, ("u1", "f4"), ("", "FHWC"), args=[{}, {"replace": True}])


@pytest.mark.parametrize("layout, replace, expected", [("", False, "F**"), ("FHW", False, "FHW"), ("HWC", True, "FWC")])
def test_layout(layout, replace, expected):
    @pipeline_def(batch_size=1)
    def pipe():
        return fn.per_frame(types.Constant(np.zeros((2, 1, 1)), layout=layout), replace=replace)

    assert pipe().run()[0].layout() == expected


@pytest.mark.parametrize("value, layout, text", [([1], "H", "does not begin with F"), (1, "", "a scalar has no axis")])
def test_errors(value, layout, text):
    with pytest.raises(RuntimeError, match=text):
        pipeline_def(lambda: fn.per_frame(types.Constant(value, layout=layout)), batch_size=1)().run()
