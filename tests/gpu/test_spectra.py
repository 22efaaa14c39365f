# SPDX-License-Identifier: Apache-2.0
"""Spectra on the GPU: lengths that shared memory can't hold, and chains of which the steps behind others join them."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock import fn, pipeline_def
from penstock.core.batch import Spec
from penstock.gpu.launch import Call, Fusion


def on_gpu(samples, make):
    @pipeline_def(batch_size=len(samples), num_threads=1, device_id=0)
    def pipe():
        return make(fn.external_source(source=lambda i: samples, device="gpu"))

    out = pipe().run()[0].as_cpu()
    return [np.array(out.at(i)) for i in range(len(samples))]


def noise(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype("f4") for s in shapes]


# By radices, with others of 7 to 13, and by a convolution; powers of two are compiled in.
@pytest.mark.parametrize(
    "lengths", [(20000, 3000), (2 * 7 * 11 * 13 * 17,), (2 * 7 * 11 * 13 * 3,), (9973, 50), (32768,)]
)
def test_long_transforms_in_scratch_memory(lengths):
    samples = noise(*lengths, *(lengths[:1]))
    got = on_gpu(samples, fn.power_spectrum)
    for x, y in zip(samples, got):
        want = np.abs(np.fft.rfft(x.astype("f8"))) ** 2
        np.testing.assert_allclose(y, want, atol=2e-6 * want.max())


def test_lengths_of_a_batch_may_differ():
    samples = noise(1, 2, 3, 64, 97, 100, 128, 143, 7)
    got = on_gpu(samples, fn.power_spectrum)
    for x, y in zip(samples, got):
        want = np.abs(np.fft.rfft(x.astype("f8"))) ** 2
        np.testing.assert_allclose(y, want, atol=4e-6 * max(want.max(), 1))


def log_mel(x):
    x = fn.spectrogram(x, window_length=400, window_step=160, nfft=512)
    x = fn.mel_filter_bank(x, nfilter=80, sample_rate=16000.0)
    return fn.to_decibels(x, reference=1.0, cutoff_db=-40.0)


def test_log_mel_is_that_of_the_cpu():
    samples = noise(16000, 5000, 1)
    got = on_gpu(samples, log_mel)

    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def on_cpu():
        return log_mel(fn.external_source(source=lambda i: samples))

    want = on_cpu().run()[0]
    for i, y in enumerate(got):
        np.testing.assert_allclose(y, want.at(i), atol=1e-3)


def test_log_mel_takes_two_launches():
    calls = [
        Call("audio/spectrogram", [1], [0]),
        Call("audio/weighted_sums", [2], [1]),
        Call("audio/decibels", [3], [2]),
    ]
    assert Fusion(calls, {3}).materialised == {1, 3}


def segment(kernel, shape, to, columns, dtypes=("f4", "f4"), n_outputs=1, other=None):
    """`kernel` from tensor 0, two samples of a shape, to tensor 1 and further ones of other shapes; `other` is the
    shape of a second input."""
    specs = {0: Spec.uniform(2, shape, np.dtype(dtypes[0]))}
    if other is not None:
        specs |= {1: Spec.uniform(2, to, np.dtype("f4")), 2: Spec.uniform(2, other, np.dtype("f4"))}
        return Segment([Step(f"audio/{kernel}", [1], [0, 2], columns)], specs, {}, {1})
    specs |= {1 + i: Spec.uniform(2, to, np.dtype(dtypes[1])) for i in range(n_outputs)}
    return Segment([Step(f"audio/{kernel}", list(range(1, 1 + n_outputs)), [0], columns)], specs, {}, set(specs) - {0})


def typical():
    """Launches of all kernels for sound."""
    for nfft in (400, 512, 2048, 2 * 9 * 7 * 11 * 13, 1009, 2):
        windows = {"nfft": nfft, "window_length": nfft, "window_step": 160, "window": np.ones((1, nfft), "f4")}
        yield segment("spectrogram", (5000,), (nfft // 2 + 1, 32), windows)
    for n in (1 << 16, 20000, 9973):
        yield segment("power_spectrum", (n,), (n // 2 + 1,), {"axis": 0, "nfft": n, "power": 2})
    sums = {"axes": 1, **{k: np.zeros((1, 80), "i4") for k in ("begin", "count", "offset")}}
    for axis, shape, to in ((0, (257, 30), (80, 30)), (1, (30, 257), (30, 80)), (0, (257, 30, 3), (80, 30, 3))):
        yield segment("weighted_sums", shape, to, {"axis": axis, "weights": np.zeros((1, 9), "f4"), **sums})
    yield segment("decibels", (80, 30), (80, 30), {"multiplier": 10.0, "reference": 1.0})
    yield segment("decibels_of_largest", (80, 30), (80, 30), {"multiplier": 10.0})
    for dtypes in (("f4", "f4"), ("i2", "f4"), ("u8", "i8"), ("f8", "u1")):
        yield segment("preemphasis_filter", (5000,), (5000,), {"coeff": 0.9}, dtypes)
    for dtypes in (("f4", "f4"), ("i2", "i2"), ("u4", "u1")):
        rates = {"in_rate": 16000.0, "out_rate": 22050.0, "lobes": 16}
        yield segment("audio_resample", (5000,), (6891,), rates, dtypes)
    for dtype in ("f4", "i2", "u8"):
        windows = {"window_length": 2048, "reset_interval": 8192}
        yield segment("nonsilent_region", (50000,), (), windows, (dtype, "i4"), n_outputs=2)
    for shape in ((5000,), (5000, 2)):
        yield segment("fade", shape, shape, {"fade_in": 9, "fade_out": 9, "shape": 4})
        yield segment("loudness", shape, shape, {"sample_rate": 16000.0, "target": -23.0})
        yield segment("add_noise", shape, shape, {"snr": 3.0}, other=(700,))
        for normalize in (0, 1):
            yield segment("reverb", shape, shape, {"normalize": normalize}, other=(700,))
