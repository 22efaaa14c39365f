# SPDX-License-Identifier: Apache-2.0
"""Pictures of the catalogue for audio: spectrograms of a sound before and after operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import fn, types

RATE = 16000
# Of the colours from silence to the loudest: black, violet, red, orange, yellow.
COLOURS = np.array([(0, 0, 8), (70, 16, 110), (180, 50, 90), (245, 125, 20), (252, 250, 160)], "f4")
SPECTROGRAM = {"nfft": 512, "window_length": 400, "window_step": 160}


def sound(seconds: float = 2.0) -> np.ndarray:
    """Three syllables with gliding harmonics over a little noise, float32."""
    t = np.arange(int(RATE * seconds)) / RATE
    hertz = 180 + 60 * np.sin(2 * np.pi * 0.8 * t)
    phase = 2 * np.pi * np.cumsum(hertz) / RATE
    voice = sum(np.sin(k * phase) / k for k in range(1, 25))
    loudness = np.clip(np.sin(2 * np.pi * 0.75 * (t + 0.1)), 0, 1) ** 0.5 * (np.abs(t % 0.667 - 0.3) < 0.24)
    return (0.2 * loudness * voice + 0.001 * np.random.default_rng(0).standard_normal(len(t))).astype("f4")


def log_mel(x: Any) -> Any:
    mel = fn.mel_filter_bank(fn.spectrogram(x, **SPECTROGRAM), sample_rate=float(RATE), nfilter=80)
    return fn.to_decibels(mel, cutoff_db=-80.0)


def decibels(x: Any) -> Any:
    return fn.to_decibels(fn.spectrogram(x, **SPECTROGRAM), cutoff_db=-80.0)


def grey(x: Any) -> Any:
    """-80 to 0 decibels as 0 to 255."""
    return fn.cast((x + 80.0) * (255 / 80), dtype=types.UINT8)


def with_noise(x: Any) -> Any:
    noise = np.random.default_rng(1).standard_normal(RATE).astype("f4")
    return log_mel(fn.audio.add_noise(x, types.Constant(noise), snr=10.0))


def in_a_room(x: Any) -> Any:
    t = np.arange(RATE // 2)
    response = np.random.default_rng(2).standard_normal(len(t)) * 10 ** (-3 * t / len(t))
    return log_mel(fn.audio.reverb(x, types.Constant(response.astype("f4"))))


def without_silence(x: Any) -> Any:
    begin, length = fn.nonsilent_region(x, cutoff_db=-30.0)
    return log_mel(fn.slice(x, begin, length, axes=[0]))


def masked(mask: Callable[..., Any], **arguments: Any) -> Callable[[Any], Any]:
    return lambda x: mask(log_mel(x), fill_value=-80.0, **arguments)


Heard = tuple[Callable[[Any], Any], str, int]
# Operator -> (what it makes of the sound, in decibels; the text below it; how often it is drawn).
DECIBELS: dict[str, Heard] = {
    "spectrogram": (decibels, "to_decibels(spectrogram(sound, nfft=512, window_length=400, window_step=160))", 1),
    "mel_filter_bank": (log_mel, "to_decibels(mel_filter_bank(spectrogram, nfilter=80))", 1),
    "to_decibels": (
        lambda x: fn.to_decibels(fn.spectrogram(x, **SPECTROGRAM), cutoff_db=-40.0),
        "to_decibels(spectrogram, cutoff_db=-40)",
        1,
    ),
    "preemphasis_filter": (
        lambda x: log_mel(fn.preemphasis_filter(x)),
        "preemphasis_filter(sound), as a log-mel spectrogram",
        1,
    ),
    "nonsilent_region": (without_silence, "slice(sound, *nonsilent_region(sound, cutoff_db=-30), axes=[0])", 1),
    "audio_resample": (
        lambda x: decibels(fn.audio_resample(x, in_rate=float(RATE), out_rate=6000.0, antialias=True)),
        "audio_resample(sound, in_rate=16000, out_rate=6000, antialias=True)",
        1,
    ),
    "audio.speed_perturb": (
        lambda x: log_mel(fn.audio.speed_perturb(x, speed=1.3)),
        "audio.speed_perturb(sound, speed=1.3)",
        1,
    ),
    "audio.add_noise": (with_noise, "audio.add_noise(sound, noise, snr=10)", 1),
    "audio.reverb": (in_a_room, "audio.reverb(sound, response)", 1),
    "audio.fade": (
        lambda x: log_mel(fn.audio.fade(x, fade_in=RATE // 2, fade_out=RATE)),
        "audio.fade(sound, fade_in=8000, fade_out=16000)",
        1,
    ),
    "audio.freq_mask": (
        masked(fn.audio.freq_mask, max_width=20, num_masks=2),
        "audio.freq_mask(log_mel, max_width=20, num_masks=2)",
        3,
    ),
    "audio.time_mask": (
        masked(fn.audio.time_mask, max_width=40, num_masks=2),
        "audio.time_mask(log_mel, max_width=40, num_masks=2)",
        3,
    ),
}
SOUNDS: dict[str, Heard] = {
    "mfcc": (lambda x: fn.mfcc(log_mel(x), n_mfcc=20, lifter=22.0), "mfcc(log_mel, n_mfcc=20, lifter=22)", 1),
    **{name: (lambda x, call=call: grey(call(x)), *more) for name, (call, *more) in DECIBELS.items()},
}


def coloured(picture: np.ndarray) -> np.ndarray:
    """A grey picture (HWC, uint8) with time from left to right, low frequencies at the bottom, and colours. What is
    small is enlarged."""
    level = picture[::-1, :, 0] / np.float32(255) * (len(COLOURS) - 1)
    known = np.arange(len(COLOURS))
    rgb = np.stack([np.interp(level, known, COLOURS[:, c]) for c in range(3)], axis=-1)
    times = max(1, 160 // len(rgb))
    return np.rint(rgb).astype("u1").repeat(times, axis=0)
