# SPDX-License-Identifier: Apache-2.0
"""Spectra on the GPU: lengths that exceed shared memory, and chains with fused steps."""

import numpy as np
import pytest
from segments import Segment, Step

from penstock import fn, pipeline_def
from penstock.core.batch import Spec
from penstock.gpu import launch
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


# By radices, including 7 to 13, and by convolution; powers of two are compiled in.
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


def test_log_mel_takes_one_launch():
    calls = [
        Call("audio/spectrogram", [1], [0]),
        Call("audio/weighted_sums", [2], [1]),
        Call("audio/decibels", [3], [2]),
    ]
    assert len(Fusion(calls, {3})._groups) == 1


def segment(kernel, shape, to, columns, dtypes=("f4", "f4"), n_outputs=1, other=None):
    """`kernel` from tensor 0, two samples of a shape, to tensor 1 and further ones of other shapes; `other` is the
    shape of a second input."""
    specs = {0: Spec.uniform(2, shape, np.dtype(dtypes[0]))}
    if other is not None:
        specs |= {1: Spec.uniform(2, to, np.dtype("f4")), 2: Spec.uniform(2, other, np.dtype("f4"))}
        return Segment([Step(f"audio/{kernel}", [1], [0, 2], columns)], specs, {}, {1})
    specs |= {1 + i: Spec.uniform(2, to, np.dtype(dtypes[1])) for i in range(n_outputs)}
    return Segment([Step(f"audio/{kernel}", list(range(1, 1 + n_outputs)), [0], columns)], specs, {}, set(specs) - {0})


def log_mel_segment(nfft=512, axis=0, layout_tf=0, windows=(32, 5), filters=80, kept=()):
    """Spectrogram, mel filters and decibels: two samples, from tensor 0 to tensor 3."""
    from penstock.operators.audio.mel_filter_bank import _bank

    bins = nfft // 2 + 1
    signals = np.array([[160 * w - 3] for w in windows], "i8")
    spectra = np.array([(w, bins) if layout_tf else (bins, w) for w in windows], "i8")
    summed = spectra.copy()
    summed[:, axis] = filters
    window = np.hanning(nfft).astype("f4")[None]
    columns = {"nfft": nfft, "window_length": nfft, "window_step": 160, "first": -(nfft // 2), "reflect": 1}
    extent = int(spectra[0, axis])
    sums = _bank(extent, filters, 16000.0, 0.0, 8000.0, "slaney", True)
    specs = {0: Spec(signals, np.dtype("f4")), **{i: Spec(s, np.dtype("f4")) for i, s in ((1, spectra), (2, summed))}}
    steps = [
        Step("audio/spectrogram", [1], [0], {**columns, "window": window, "power": 2, "time_first": layout_tf}),
        Step("audio/weighted_sums", [2], [1], {"axis": axis, "axes": 1, **sums}),
        Step("audio/decibels", [3], [2], {"multiplier": 10.0, "reference": 1.0, "smallest": 1e-10}),
    ]
    inputs = {0: noise(*(tuple(s) for s in signals))}
    return Segment(steps, {**specs, 3: specs[2]}, inputs, {3, *kept})


@pytest.mark.parametrize(
    "launches, case",
    [
        (1, {}),
        (1, {"layout_tf": 1, "axis": 1}),
        (1, {"nfft": 400}),
        (1, {"nfft": 1024, "windows": (1, 2)}),
        (1, {"nfft": 2048, "windows": (1, 2)}),
        (1, {"nfft": 36, "filters": 8}),
        (2, {"nfft": 8192}),  # exceeds shared memory
        (2, {"nfft": 401}),
        (2, {"filters": 3000}),
        (2, {"kept": (1,)}),
        (2, {"axis": 1, "windows": (7, 7), "filters": 4}),  # along time
    ],
)
def test_spectra_that_only_mel_filters_read_stay_in_shared_memory(launches, case):
    segment = log_mel_segment(**case)
    assert len(segment.launches()[1]) == launches
    got, want = segment.on_device(), segment.on_cpu()
    for t in want:
        for x, y in zip(got[t], want[t]):
            np.testing.assert_allclose(x, y, rtol=2e-5, atol=2e-4 * max(1, float(np.abs(y).max()) if t == 1 else 1))


@pytest.mark.parametrize("nfft, step, power", [(64, 40, 2), (400, 7, 1)])
@pytest.mark.parametrize("offset", [0, 3])
def test_blocks_that_take_several_groups_of_windows(monkeypatch, nfft, step, power, offset):
    monkeypatch.setattr(launch, "_WAVE", 1)  # few blocks, so that each has several groups of windows
    windows = (150, 40, 1, 97, 64)
    signals = np.array([[step * w - min(3, step - 1)] for w in windows], "i8")
    spectra = np.array([(nfft // 2 + 1, w) for w in windows], "i8")
    columns = {"nfft": nfft, "window_length": nfft, "window_step": step, "first": -(nfft // 2), "reflect": 1}
    specs = {0: Spec(signals, np.dtype("f4")), 1: Spec(spectra, np.dtype("f4"))}
    columns |= {"window": np.hanning(nfft).astype("f4")[None], "power": power}
    steps = [Step("audio/spectrogram", [1], [0], columns)]
    segment = Segment(steps, specs, {0: noise(*(tuple(s) for s in signals))}, {1})
    (only,) = segment.launches()[1]
    assert "FixedFft" in only.source and only.grid[0] < 5
    for x, y in zip(segment.on_device(offset)[1], segment.on_cpu()[1]):
        np.testing.assert_allclose(x, y, atol=2e-6 * y.max())


def typical():
    """Launches of all kernels for sound."""
    for nfft in (400, 512, 2048, 2 * 9 * 7 * 11 * 13, 1009, 2):
        windows = {
            "nfft": nfft,
            "power": 2,
            "window_length": nfft,
            "window_step": 160,
            "window": np.ones((1, nfft), "f4"),
        }
        yield segment("spectrogram", (5000,), (nfft // 2 + 1, 32), windows)
    for n in (1 << 16, 20000, 9973):
        yield segment("power_spectrum", (n,), (n // 2 + 1,), {"axis": 0, "nfft": n, "power": 2})
    sums = {"axes": 1, **{k: np.zeros((1, 80), "i4") for k in ("begin", "count", "offset")}}
    yield log_mel_segment()
    yield log_mel_segment(nfft=400, layout_tf=1, axis=1)
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


@pytest.mark.parametrize("more", [{}, {"antialias": True, "quality": 20.0}])
def test_rates_are_the_same_in_some_batches(more):
    """Samples with the same rates share weights, others don't; this may change between batches."""
    scales = [[2.0, 2.0, 2.0], [2.0, 0.5, 1.3], [0.3, 0.3, 0.3], [2.0, 2.0, 2.0], [0.01, 3.0, 1.0]]
    signals = [noise((300, 1), (700, 2), (n, 3)) for n in (1200, 1, 5000, 1200, 2)]
    batches = [np.array(s, "f4") for s in scales]

    def pipe(device):
        @pipeline_def(batch_size=3, num_threads=1, device_id=0 if device == "gpu" else None)
        def define():
            x = fn.external_source(source=lambda i: signals[i % 5], device=device)
            return fn.audio_resample(x, scale=fn.external_source(source=lambda i: batches[i % 5]), **more)

        return define()

    on_gpu, on_cpu = pipe("gpu"), pipe("cpu")
    for _ in batches:
        got, want = on_gpu.run()[0].as_cpu(), on_cpu.run()[0]
        for i in range(3):
            np.testing.assert_allclose(got.at(i), want.at(i), atol=1e-5)
