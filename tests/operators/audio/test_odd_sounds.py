# SPDX-License-Identifier: Apache-2.0
"""Sounds at the limits: empty, of one sample, silent, clipped, not finite, of many channels, very long, damaged."""

from functools import partial

import numpy as np
import pytest
from sound_files import encoded, noise, pcm, wav

from penstock import fn, pipeline_def

RATE = 16000
GOOD = [np.random.default_rng(k).uniform(-1, 1, n).astype("f4") for k, n in enumerate((1000, 3001))]
ODD = {
    "one sample": np.float32([0.5]),
    "silent": np.zeros(2000, "f4"),
    "clipped": np.float32([1, -1] * 700),
    "beyond 1": np.float32([3e38, -3e38] * 300),
    "NaN": np.where(np.arange(1500) == 700, np.nan, GOOD[1][:1500]).astype("f4"),
    "infinite": np.where(np.arange(1500) == 700, np.inf, GOOD[1][:1500]).astype("f4"),
}


def log_mel(x):
    mel = fn.mel_filter_bank(fn.spectrogram(x, nfft=512), sample_rate=float(RATE), nfilter=40)
    return fn.normalize(fn.to_decibels(mel), axes=[1])


def mfcc(x):
    return fn.mfcc(fn.to_decibels(fn.mel_filter_bank(fn.spectrogram(x, nfft=512), sample_rate=float(RATE), nfilter=40)))


OPERATORS = {
    "spectrogram": lambda x: fn.spectrogram(x, nfft=400, window_length=400),
    "power_spectrum": lambda x: fn.power_spectrum(x, nfft=4096),
    "log-mel": log_mel,
    "mfcc": mfcc,
    "preemphasis_filter": fn.preemphasis_filter,
    "nonsilent_region": lambda x: fn.stack(*fn.nonsilent_region(x)),
    "audio_resample": lambda x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0),
    "audio_resample, antialias": lambda x: fn.audio_resample(x, in_rate=48000.0, out_rate=16000.0, antialias=True),
    "audio.speed_perturb": lambda x: fn.audio.speed_perturb(x, speed=0.9),
    "audio.fade": lambda x: fn.audio.fade(x, fade_in=100, fade_out=100),
}


def run(samples, define, threads=2, layout="t"):
    @pipeline_def(batch_size=len(samples), num_threads=threads)
    def pipe():
        return define(fn.external_source(source=lambda i: samples, layout=layout, no_copy=True))

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(len(samples))]


@pytest.mark.parametrize("name", OPERATORS)
def test_odd_signals_leave_their_neighbours_alone(name):
    alone = run(GOOD, OPERATORS[name], threads=1)
    for odd, x in ODD.items():
        first, out, last = run([GOOD[0], x, GOOD[1]], OPERATORS[name])
        np.testing.assert_array_equal(first, alone[0], err_msg=odd)
        np.testing.assert_array_equal(last, alone[1], err_msg=odd)
        np.testing.assert_array_equal(out, run([x], OPERATORS[name])[0], err_msg=odd)
        if odd in ("one sample", "silent", "clipped"):
            assert np.isfinite(out).all(), odd


def test_silence_has_no_features():
    silent = [ODD["silent"]]
    for name in (
        "spectrogram",
        "power_spectrum",
        "log-mel",
        "preemphasis_filter",
        "audio_resample",
    ):
        assert not run(silent, OPERATORS[name])[0].any(), name


def test_what_is_not_finite_stays_where_it_is():
    whole = run([np.where(np.isnan(ODD["NaN"]), 0, ODD["NaN"]).astype("f4")], OPERATORS["audio_resample"])[0]
    out = run([ODD["NaN"]], OPERATORS["audio_resample"])[0]
    far = np.abs(np.arange(len(out)) * 16000 / 22050 - 700) > 32
    np.testing.assert_array_equal(out[far], whole[far])
    assert np.isnan(out[~far]).any()


@pytest.mark.parametrize("rate, channels", [(192000, 1), (192000, 32), (8000, 32)])
def test_many_channels_and_high_rates(rate, channels):
    whole, data = pcm(noise(3000, channels), 16)
    samples = [wav(data, channels, rate)]
    out = run(samples, lambda x: fn.decoders.audio(x)[0], layout=None)[0]
    np.testing.assert_array_equal(out, (whole / 2**15).astype("f4"))
    resampled = run(samples, lambda x: fn.decoders.audio(x, sample_rate=16000.0)[0], layout=None)[0]
    for c in (0, channels - 1):
        one = run([out[:, c].copy()], partial(fn.audio_resample, in_rate=float(rate), out_rate=16000.0))[0]
        np.testing.assert_array_equal(resampled[:, c], one)


def virtual_wav(frames, bits, last):
    """A file of silence that ends with the bytes `last`. Unread memory is not allocated."""
    size = frames * bits // 8
    file = np.zeros(44 + size, "u1")
    file[:44] = wav(b"", bits=bits, length=size)
    file[len(file) - len(last) :] = np.frombuffer(last, "u1")
    return file


@pytest.mark.parametrize("frames, bits", [(3600 * RATE, 16), (2**31 + 50, 8)])
def test_hours_are_not_decoded_for_seconds(frames, bits):
    whole, last = pcm(noise(100), bits)
    file = virtual_wav(frames, bits, last)
    assert run([file], lambda x: fn.peek_audio(x)[2], layout=None)[0] == frames
    begin = frames - 100

    def part(x):
        return fn.slice(fn.decoders.audio(x, downmix=True)[0], start=[begin], shape=[100], axes=[0])

    np.testing.assert_array_equal(run([file], part, layout=None)[0], (whole[:, 0] / 2 ** (bits - 1)).astype("f4"))


def test_an_hour_resampled():
    """Its end is equal to that of the end alone: positions do not drift."""
    tail = np.random.default_rng(0).standard_normal(512 * 20).astype("f4")
    hour = np.zeros(3600 * RATE // 512 * 512, "f4")
    hour[-len(tail) :] = tail
    halved = {"in_rate": 16000.0, "out_rate": 8000.0}
    out = run([hour], lambda x: fn.audio_resample(x, **halved))[0]
    alone = run([tail], lambda x: fn.audio_resample(x, **halved))[0]
    np.testing.assert_array_equal(out[-len(alone) :], alone)
    assert len(out) == len(hour) // 2


@pytest.mark.parametrize("fmt, subtype", [("FLAC", "PCM_16"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", "PCM_16")])
def test_damaged_files_are_errors_of_their_samples(fmt, subtype):
    pytest.importorskip("soundfile")
    good = encoded(noise(6000), 16000, fmt, subtype)
    expected = run([good], lambda x: fn.decoders.audio(x)[0], layout=None)[0]
    rng = np.random.default_rng(0)
    damaged = [good[:n] for n in (0, 1, 4, 20, 43, 100)]
    for _ in range(30):
        bad = good.copy()
        bad[rng.integers(0, len(bad), 20)] = rng.integers(0, 256, 20)
        damaged.append(bad)

    @pipeline_def(batch_size=len(damaged) + 2, num_threads=2, on_error="replace")
    def pipe():
        return fn.decoders.audio(fn.external_source(source=lambda i: [good, *damaged, good]))[0]

    p = pipe()
    (out,) = p.run()
    np.testing.assert_array_equal(out.at(0), expected)
    np.testing.assert_array_equal(out.at(len(damaged) + 1), expected)
