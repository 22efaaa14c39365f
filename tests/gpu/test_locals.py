# SPDX-License-Identifier: Apache-2.0
"""LOCAL kernels, alone and as chains, against the CPU's."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock.core.batch import Spec

SIZES = ((5, 4), (1, 1), (0, 4), (33, 17), (8, 67))
RNG = np.random.default_rng(1)


def images(dtype="u1", channels=3, sizes=SIZES):
    """Ragged samples HWC over the whole range of a type."""
    samples = []
    for h, w in sizes:
        x = (
            RNG.integers(0, 256, (h, w, channels))
            if np.dtype(dtype).kind in "iu"
            else RNG.random((h, w, channels)) * 300 - 20
        )
        samples.append(x.astype(dtype))
    return samples


def spec_of(samples, layout="HWC"):
    return Spec(np.array([x.shape for x in samples]), samples[0].dtype, layout)


def column(lo, hi, n=len(SIZES)):
    return RNG.uniform(lo, hi, n).astype("f4")


@pytest.mark.parametrize("offset", (0, 1, 3))
@pytest.mark.parametrize("to", ("u1", "f4", "i2"))
@pytest.mark.parametrize("of", ("u1", "f4"))
def test_linear(of, to, offset):
    x = images(of)
    spec = spec_of(x)
    columns = {"mul": column(0.2, 2), "add": column(-50, 50)}
    Segment([Step("color/linear", [1], [0], columns)], {0: spec, 1: spec.like(dtype=np.dtype(to))}, {0: x}, {1}).check(
        offsets=(offset,)
    )
