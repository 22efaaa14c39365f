# SPDX-License-Identifier: Apache-2.0
import numpy as np

from harness import op_test, per_sample
from penstock import types
from sampling_reference import places, sampled

LINEAR = types.INTERP_LINEAR


def reference(
    x,
    mask=1,
    fill_value=0.0,
    interp_type=types.INTERP_NN,
    ampl_x=10,
    ampl_y=10,
    freq_x=0.049087,
    freq_y=0.049087,
    phase_x=0,
    phase_y=0,
):
    if not mask or not x.size:
        return x
    u, v = places(*x.shape[:2])
    at = u + ampl_x * np.sin(freq_x * v + phase_x), v + ampl_y * np.cos(freq_y * u + phase_y)
    return sampled(x, *at, int(interp_type), fill=fill_value)


GENTLE = {"ampl_x": 2, "ampl_y": 1.5, "freq_x": 0.3, "freq_y": 0.2, "phase_x": 0.5, "phase_y": 0.7}
TestWater = op_test(
    "water",
    reference,
    ("u1", "f4"),
    args=[
        {},
        GENTLE,
        {**GENTLE, "fill_value": 77.4},
        {**GENTLE, "interp_type": LINEAR},
        {**GENTLE, "interp_type": LINEAR, "fill_value": -3},
        {**GENTLE, "mask": per_sample(0, 2, dtype="i4")},
        {"ampl_x": 3.3, "ampl_y": -2.2, "interp_type": LINEAR},
        {**GENTLE, "ampl_y": 4.0, "phase_x": -1.25, "interp_type": LINEAR},
        {"ampl_x": 0, "ampl_y": 0.25, "freq_y": 3, "interp_type": LINEAR, "fill_value": 255},
    ],
    steps=1,
    atol=2e-4,
    share=0.05,
    dali_differs={
        "HWC-defaults": "10 * cos(pi / 2) is zero but for rounding, whose sign decides about the first row",
        "fill_value=-3": "DALI wraps a fill value that is out of range around",
    },
    errors=[
        ({"interp_type": types.INTERP_CUBIC}, ValueError, "supported: INTERP_NN, INTERP_LINEAR"),
        ({"freq_x": float("nan")}, ValueError, "freq_x must be finite"),
    ],
)
TestGray = op_test(
    "water", reference, args=[GENTLE, {**GENTLE, "interp_type": LINEAR}], channels=1, steps=1, share=0.05
)
TestMany = op_test(
    "water", reference, args=[GENTLE, {**GENTLE, "interp_type": LINEAR}], channels=6, steps=1, share=0.05
)
TestLarge = op_test(
    "water",
    reference,
    args=[GENTLE, {**GENTLE, "interp_type": LINEAR}],
    sizes=[(40, 60), (61, 31)],
    steps=1,
    share=0.05,
)
