# SPDX-License-Identifier: Apache-2.0
import numpy as np
from morphology import ARGS, ERRORS, GPU_ONLY, PER_FRAME, extreme

from harness import op_test


def outside(dtype):
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


NAME = "experimental.erode"
TestImages = op_test(NAME, extreme(0, np.min, outside), dtypes=("u1", "u2", "f4"), args=ARGS, errors=ERRORS, **GPU_ONLY)
TestPlanes = op_test(NAME, extreme(1, np.min, outside), layouts=("CHW", "FCHW"), args=ARGS[:3], **GPU_ONLY)
TestGray = op_test(NAME, extreme(0, np.min, outside), layouts=("HW", "FHW"), args=ARGS[:3], **GPU_ONLY)
TestPerFrame = op_test(NAME, extreme(0, np.min, outside), layouts=("FHWC",), args=PER_FRAME, **GPU_ONLY)
