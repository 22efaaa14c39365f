# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types


def reference(x, axis=-1, nfft=None, power=2):
    return (np.abs(np.fft.rfft(x.astype("f8"), nfft, axis)) ** power).astype("f4")


def noise(*shapes):
    return lambda rng, case: [rng.standard_normal(s).astype("f4") for s in shapes]


TestVectors = op_test(
    "power_spectrum",
    reference,
    dtypes=("f4",),
    layouts=("t",),
    args=[{}, {"power": 1}, {"nfft": 4096}, {"nfft": 5001, "axis": 0}, {"nfft": 5000, "power": 1}],
    make_input=noise((10,), (33,), (512,), (1000,), (4096,)),
    ulps=16,
    errors=[
        ({"power": 0}, ValueError, "power takes 1"),
        ({"nfft": 0}, ValueError, "nfft takes a positive number; got 0"),
        ({"axis": 2}, RuntimeError, "axis 2 is out of range for an input of 1 axes"),
    ],
)
# Lengths for which one signal uses all lanes, with radix 2 and others.
TestLongSignals = op_test(
    "power_spectrum",
    reference,
    dtypes=("f4",),
    layouts=("ct",),
    args=[{"nfft": 1 << 14}, {"nfft": 48000, "power": 1}],
    make_input=noise((1, 16384), (2, 16383), (3, 5), (1, 9000)),
    ulps=16,
)
POWERS = [{}, {"nfft": 50}, {"nfft": 64, "power": 1}, {"power": 1}]
TestAxes = op_test(
    "power_spectrum",
    reference,
    dtypes=("f4",),
    layouts=("abc",),
    args=[{"axis": a, **more} for a in (-1, 0, 1, 2) for more in POWERS],
    make_input=noise((4, 5, 40), (9, 33, 3), (10, 20, 8)),
    ulps=16,
)


def test_nfft_may_cut_the_axis():  # where DALI writes beyond its memory
    x = np.random.default_rng(0).random((3, 100)).astype("f4")
    out = pipeline_def(lambda: fn.power_spectrum(types.Constant(x), nfft=64), batch_size=1)().run()[0].at(0)
    np.testing.assert_allclose(out, reference(x, nfft=64), rtol=1e-5, atol=1e-3)


def test_an_empty_axis_needs_nfft():
    def pipe(**kwargs):
        x = types.Constant(np.zeros((2, 0), "f4"))
        return pipeline_def(lambda: fn.power_spectrum(x, **kwargs), batch_size=1)().run()[0].at(0)

    assert pipe(nfft=8).tolist() == np.zeros((2, 5)).tolist()
    with pytest.raises(RuntimeError, match="an empty axis has no spectrum"):
        pipe()
