# SPDX-License-Identifier: Apache-2.0
import numpy as np
from morphology import ARGS, ERRORS, GPU_ONLY, PER_FRAME, extreme

from harness import op_test


def outside(dtype):
    return -np.inf if dtype.kind == "f" else 0


NAME = "experimental.dilate"
TestImages = op_test(NAME, extreme(0, np.max, outside), dtypes=("u1", "u2", "f4"), args=ARGS, errors=ERRORS, **GPU_ONLY)
TestPlanes = op_test(NAME, extreme(1, np.max, outside), layouts=("CHW", "FCHW"), args=ARGS[:3], **GPU_ONLY)
TestGray = op_test(NAME, extreme(0, np.max, outside), layouts=("HW", "FHW"), args=ARGS[:3], **GPU_ONLY)
TestPerFrame = op_test(NAME, extreme(0, np.max, outside), layouts=("FHWC",), args=PER_FRAME, **GPU_ONLY)
