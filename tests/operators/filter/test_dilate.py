# SPDX-License-Identifier: Apache-2.0
import numpy as np
from morphology import ARGS, ERRORS, GPU_ONLY, PER_FRAME, extreme

from harness import op_test


def outside(dtype):
    return -np.inf if dtype.kind == "f" else 0


NAME = "experimental.dilate"
# This many iterations cover the whole image; the reference uses only the required number.
REACHED = 60
_reached = lambda x, iterations, **kw: extreme(0, np.max, outside)(x, iterations=REACHED, **kw)  # noqa: E731
TestEndless = op_test(
    NAME,
    _reached,
    args=[
        {"iterations": 2**31 - 1},
        {"iterations": 2**31 - 1, "mask_size": [2, 1], "anchor": [0, 0]},
        {"iterations": 2**31 - 1, "mask_size": [1, 3], "border_mode": "wrap"},
        {"iterations": 2**31 - 1, "mask_size": [4, 3], "anchor": [3, 0], "border_mode": "reflect_101"},
    ],
    sizes=((5, 4), (1, 1), (9, 17), (30, 3)),
    **GPU_ONLY,
)
TestImages = op_test(NAME, extreme(0, np.max, outside), dtypes=("u1", "u2", "f4"), args=ARGS, errors=ERRORS, **GPU_ONLY)
TestPlanes = op_test(NAME, extreme(1, np.max, outside), layouts=("CHW", "FCHW"), args=ARGS[:3], **GPU_ONLY)
TestGray = op_test(NAME, extreme(0, np.max, outside), layouts=("HW", "FHW"), args=ARGS[:3], **GPU_ONLY)
TestPerFrame = op_test(NAME, extreme(0, np.max, outside), layouts=("FHWC",), args=PER_FRAME, **GPU_ONLY)
