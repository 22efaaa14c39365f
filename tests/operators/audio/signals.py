# SPDX-License-Identifier: Apache-2.0
"""Signals for the tests of audio operators."""

import numpy as np


def signals(*lengths, scale=1.0):
    """`make_input` of noise of these lengths; integers use their range times `scale`."""

    def make(rng, case):
        dtype = np.dtype(case.dtype)
        if dtype.kind == "f":
            return [(rng.standard_normal(n) * scale).astype(dtype) for n in lengths]
        info = np.iinfo(dtype)
        return [rng.integers(int(info.min * scale), int(info.max * scale), n, dtype, endpoint=True) for n in lengths]

    return make


def spectra(*shapes):
    """`make_input` of positive float32 of these shapes."""
    return lambda rng, case: [(rng.random(s) ** 4).astype("f4") for s in shapes]
