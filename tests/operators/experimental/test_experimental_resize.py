# SPDX-License-Identifier: Apache-2.0
"""fn.experimental.resize is fn.resize, on both devices. geometry/test_resize.py tests the definition."""

import numpy as np
import pytest

from harness import Case, full_shape, random_array, run
from penstock import types


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize(
    "dtype, layout, kwargs",
    [
        ("u1", "HWC", {"size": (7, 12)}),
        ("f4", "FHWC", {"resize_shorter": 9, "interp_type": types.INTERP_CUBIC}),
        ("u1", "CHW", {"size": (7, 12), "save_attrs": True}),
    ],
)
def test_as_resize(dtype, layout, kwargs, device):
    rng = np.random.default_rng(3)
    x = [random_array(rng, full_shape(layout, hw, 3, i), dtype) for i, hw in enumerate(((5, 4), (33, 17)))]
    case = Case(dtype, layout, kwargs)
    if device == "gpu":
        from harness import build

        got, want = (
            [[np.asarray(t.as_cpu().at(i)) for i in range(2)] for t in build(n, x, case, {}, device=device).run()]
            for n in ("experimental.resize", "resize")
        )
    else:
        got, want = (run(name, x, case, {}) for name in ("experimental.resize", "resize"))
    for a, b in zip(got, want, strict=True):
        for p, q in zip(a, b, strict=True):
            np.testing.assert_array_equal(p, q, strict=True)
