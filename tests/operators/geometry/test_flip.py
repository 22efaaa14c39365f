# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample


def reference_for(layout):
    def reference(x, horizontal=1, vertical=0, depthwise=0):
        chosen = {"W": horizontal, "H": vertical, "D": depthwise}
        return np.flip(x, [d for d, c in enumerate(layout) if chosen.get(c, 0)])

    return reference


SOME = {k: per_sample(0, 2, dtype="i4") for k in ("horizontal", "vertical", "depthwise")}
ARGS = [{}, SOME, {"horizontal": 0}, {"horizontal": 0, "vertical": 1}, {"vertical": -3}, {"depthwise": 1}]
TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8")
UNKNOWN_TO_DALI = {"float16": "DALI has no float16 here", "bool": "DALI has no bool here"}

TestFlip = op_test(
    "flip",
    reference_for("HWC"),
    args=ARGS,
    errors=[({"horizontal": 0.5}, TypeError, "takes an integer"), ({"flip": 1}, TypeError, "no argument|unexpected")],
)
TestTypes = op_test("flip", reference_for("HWC"), dtypes=(*TYPES, "f2", "?"), args=[SOME], dali_differs=UNKNOWN_TO_DALI)
TestTypesOfPlanes = op_test("flip", reference_for("CHW"), dtypes=TYPES, layouts=("CHW",), args=[SOME, {}])
TestGray = op_test("flip", reference_for("HWC"), args=ARGS[:2], channels=1, dtypes=("u1", "u2", "f4"))
TestFourChannels = op_test("flip", reference_for("HWC"), args=ARGS[:2], channels=4, dtypes=("u1", "f4", "f8"))
TestFiveChannels = op_test("flip", reference_for("HWC"), args=ARGS[:2], channels=5, dtypes=("u1", "f4"))
TestVolumes = op_test("flip", reference_for("DHWC"), layouts=("DHWC",), args=ARGS)
TestPlanarVolumes = op_test("flip", reference_for("CDHW"), layouts=("CDHW",), args=ARGS)
TestSequences = op_test("flip", reference_for("HWC"), layouts=("FHWC",), args=ARGS)
TestPlanarSequences = op_test("flip", reference_for("CHW"), layouts=("FCHW",), args=ARGS)
TestVolumeSequences = op_test("flip", reference_for("DHWC"), layouts=("FDHWC",), args=ARGS)
TestPlanarVolumeSequences = op_test("flip", reference_for("CDHW"), layouts=("FCDHW",), args=ARGS)
