# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def

ARGUMENTS = [
    {"cutoff_db": -30.0},
    {"cutoff_db": -3.0},
    {"cutoff_db": -10.0, "reference_power": 1.0},
    {"cutoff_db": 3.0},
    {"cutoff_db": -30.0, "window_length": 1, "reset_interval": 1},
    {"cutoff_db": -30.0, "window_length": 50, "reset_interval": 150},
    {"cutoff_db": -30.0, "window_length": 64, "reset_interval": -1},
    {"cutoff_db": -20.0, "window_length": 3000, "reset_interval": 3000},
]


def reference(x, cutoff_db=-60.0, reference_power=0.0, window_length=2048, reset_interval=8192):
    """Each mean square is computed separately."""
    n, x = len(x), x.astype("f8")
    length = min(window_length, n)
    if not n:
        return np.int32(0), np.int32(0)
    sums = np.concatenate([[0], np.cumsum(np.round(x * 4096) ** 2)])  # exact, as the inputs are multiples of 2^-12
    ends = np.arange(1, n + 1)
    means = (sums[ends] - sums[np.maximum(ends - length, 0)]) / length / 4096**2
    loud = np.flatnonzero(means >= (reference_power or means.max()) * 10 ** (cutoff_db / 10))
    if not len(loud):
        return np.int32(0), np.int32(0)
    begin = max(loud[0] - length + 1, 0)
    return np.int32(begin), np.int32(loud[-1] + 1 - begin)


def bursts(rng, case):
    """A loud part somewhere in faint noise, in multiples of 2^-6: the running sums in float32 are exact."""
    out = []
    for n in (1, 5, 100, 3000, 20000):
        x = rng.integers(-1, 2, n) * (1 if n < 3000 else 0.5)
        x[n // 3 : n // 2] += rng.integers(-64, 65, n // 2 - n // 3)
        is_float = np.dtype(case.dtype).kind == "f"
        if case.dtype == "u1":
            x = np.abs(x)
        out.append((np.round(x * 2) / 128).astype(case.dtype) if is_float else x.astype(case.dtype))
    return out


TestNonsilentRegion = op_test(
    "nonsilent_region",
    reference,
    dtypes=("f4", "i2", "u1", "i4"),
    layouts=("",),
    args=ARGUMENTS,
    make_input=bursts,
    errors=[
        ({"window_length": 100, "reset_interval": 150}, RuntimeError, "multiple of the window_length of 100, or -1"),
        ({"reference_power": -1.0}, ValueError, "reference_power takes a positive number"),
        ({"reference_power": 0.0}, ValueError, "reference_power takes a positive number; got 0.0"),
    ],
)


def region(x, **kwargs):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.nonsilent_region(fn.external_source(source=lambda i: [x]), **kwargs)

    return tuple(int(o.at(0)) for o in pipe().run())


def test_silence():
    assert region(np.zeros(100, "f4")) == (0, 100)  # as in DALI: everything is as loud as the maximum
    assert region(np.zeros(100, "f4"), reference_power=1.0) == (0, 0)
    assert region(np.zeros(0, "f4")) == (0, 0)


def test_running_sums_drift_as_they_do_in_dali():
    """After a loud part, float32 leaves a rounding error above -60 dB until the sum is reset."""
    x = np.zeros(20000, "f4")
    x[7000:9000] = np.random.default_rng(0).standard_normal(1000).astype("f4").repeat(2)
    assert region(x) == (4953, 11431)


def test_all_is_below_a_cutoff_beyond_float32():
    x = np.random.default_rng(0).random(9, "f4")
    assert region(x, cutoff_db=1e30) == (0, 0)
    assert region(x, cutoff_db=-1e30) == (0, 9)


def test_window_length():  # of 0 kills DALI
    with pytest.raises(ValueError, match="window_length takes a positive number of samples; got 0"):
        region(np.zeros(5, "f4"), window_length=0)


def test_dimensions():
    with pytest.raises(RuntimeError, match="a signal has one dimension; the input has 2"):
        region(np.zeros((5, 2), "f4"))
