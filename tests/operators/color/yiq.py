# SPDX-License-Identifier: Apache-2.0
"""Reference of the operators that turn hue and scale saturation: through YIQ and back, pixel by pixel in float64."""

import numpy as np

RGB_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]])


def turned(x, hue=0.0, saturation=1.0):
    """RGB pixels (..., 3) whose hue is turned by `hue` degrees and whose saturation is multiplied, as float64."""
    y, i, q = np.moveaxis(x.astype("f8") @ RGB_TO_YIQ.T, -1, 0)
    chroma = saturation * (i + 1j * q) * np.exp(-1j * np.radians(hue))
    return np.linalg.solve(RGB_TO_YIQ, np.stack([y, chroma.real, chroma.imag], -1)[..., None])[..., 0]
