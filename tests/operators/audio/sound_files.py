# SPDX-License-Identifier: Apache-2.0
"""Encoded sounds for the tests. References are formulas for WAV and python-soundfile for other formats."""

import io
import struct

import numpy as np


def noise(frames, channels=1, seed=0):
    """(frames, channels) float64: a chirp and noise, within -1 to 1."""
    rng = np.random.default_rng(seed)
    t = np.arange(frames)[:, None] / 16000
    return 0.4 * np.sin(2 * np.pi * (200 + 900 * t) * t * (1 + np.arange(channels))) + 0.3 * rng.uniform(
        -1, 1, (frames, channels)
    )


def chunk(name, data):
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def wav(data, channels=1, rate=16000, bits=16, code=1, extensible=False, before=b"", riff=b"RIFF", length=None):
    """A WAV file of the bytes `data`; `before` are chunks ahead of them."""
    size = channels * ((bits + 7) // 8)
    fmt = struct.pack("<HHIIHH", 0xFFFE if extensible else code, channels, rate, rate * size, size, bits)
    if extensible:
        fmt += struct.pack("<HHIH", 22, bits, 0, code) + bytes.fromhex("000000001000800000aa00389b71")
    body = b"WAVE" + before + chunk(b"fmt ", fmt)
    if riff == b"RF64":
        body = b"WAVE" + chunk(b"ds64", struct.pack("<QQQI", 0, len(data), 0, 0)) + body[4:]
    stored = len(data) if length is None else length
    body += b"data" + struct.pack("<I", 0xFFFFFFFF if riff == b"RF64" else stored) + data
    return np.frombuffer(riff + struct.pack("<I", len(body)) + body, "u1")


def pcm(x, bits):
    """Samples -1 to 1 as integers, and their bytes in a WAV file."""
    whole = np.clip(np.round(x * 2 ** (bits - 1)), -(2 ** (bits - 1)), 2 ** (bits - 1) - 1).astype("i8")
    if bits == 8:
        return whole, (whole + 128).astype("u1").tobytes()
    return whole, whole.astype("<i4").view("u1").reshape(*x.shape, 4)[..., : bits // 8].tobytes()


def encoded(x, rate, fmt, subtype=None):
    """A file as libsndfile writes it."""
    soundfile = __import__("soundfile")
    file = io.BytesIO()
    soundfile.write(file, x, rate, format=fmt, subtype=subtype)
    return np.frombuffer(file.getvalue(), "u1")


def decoded(file, dtype):
    soundfile = __import__("soundfile")
    return soundfile.read(io.BytesIO(file.tobytes()), dtype=dtype, always_2d=True)[0]
