# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample
from penstock import types
from sampling_reference import places, sampled

LINEAR = types.INTERP_LINEAR
SIZES = ((5, 4), (0, 4), (33, 17), (8, 67))  # DALI divides by zero for a single pixel


def reference(x, mask=1, fill_value=0.0, interp_type=types.INTERP_NN):
    if not mask or not x.size:
        return x
    h, w = x.shape[:2]
    u, v = (c + 0.5 for c in places(h, w))
    du, dv = u - w / 2, v - h / 2
    share = np.hypot(du, dv) / max(max(h, w) // 2, 1)
    return sampled(x, w / 2 + du * share, h / 2 + dv * share, int(interp_type), fill=fill_value)


ARGS = [
    {},
    {"fill_value": 77.4},
    {"interp_type": LINEAR},
    {"interp_type": LINEAR, "fill_value": 30},
    {"mask": 0, "interp_type": LINEAR},
    {"mask": per_sample(0, 2, dtype="i4"), "fill_value": 9},
    {"mask": per_sample(0, 2, dtype="i4"), "interp_type": LINEAR},
    {"mask": 1, "fill_value": 255},
]
TestSphere = op_test(
    "sphere",
    reference,
    ("u1", "f4"),
    args=ARGS,
    sizes=SIZES,
    steps=1,
    atol=1e-3,
    share=0.02,
    dali_differs={"mask=0,interp_type=INTERP_LINEAR": "DALI moves an image that is to stay by half a pixel"},
    errors=[
        ({"interp_type": types.INTERP_CUBIC}, ValueError, "supported: INTERP_NN, INTERP_LINEAR"),
        ({"mask": 1.5}, TypeError, "an integer"),
    ],
)
TestChannels = op_test(
    "sphere", reference, args=[{}, {"interp_type": LINEAR}], channels=1, sizes=SIZES, steps=1, share=0.02
)
TestFour = op_test(
    "sphere", reference, args=[{}, {"interp_type": LINEAR}], channels=4, sizes=SIZES, steps=1, share=0.02
)
TestMany = op_test(
    "sphere",
    reference,
    args=[{}, {"interp_type": LINEAR, "fill_value": 5}],
    channels=7,
    sizes=SIZES,
    steps=1,
    share=0.02,
)
TestLarge = op_test(
    "sphere", reference, args=[{}, {"interp_type": LINEAR}], sizes=[(40, 60), (61, 31)], steps=1, share=0.02
)
TestTypes = op_test(
    "sphere",
    reference,
    ("u2", "i2"),
    args=[{}, {"interp_type": LINEAR}],
    steps=2,
    share=1,
    dali_differs={"int16": "DALI has no 16-bit types here"},
)
