# SPDX-License-Identifier: Apache-2.0
"""decoders.audio against the real DALI: formats, types, channels, rates."""

import glob
import os
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock
from conformance import oracle
from penstock import types

sys.path.append(str(Path(__file__).parents[1] / "operators" / "audio"))
from sound_files import encoded, noise, pcm, wav  # noqa: E402

ARGUMENTS = [
    {},
    {"dtype": types.INT16},
    {"dtype": types.INT32},
    {"downmix": True},
    {"downmix": True, "dtype": types.INT16},
    {"sample_rate": 22050.0},
    {"sample_rate": 0.0},
    {"sample_rate": -1.0},
    {"sample_rate": 8000.0, "quality": 100.0, "downmix": True},
    {"sample_rate": 11025.0, "quality": 0.0, "dtype": types.INT16},
]


def files():
    made = {
        f"wav of {bits} bits, {channels} channels": wav(pcm(noise(9001, channels), bits)[1], channels, 16000, bits)
        for bits in (8, 16, 24, 32)
        for channels in (1, 2, 5)
    }
    codes = np.arange(256, dtype="u1").tobytes()
    made |= {"A-law": wav(codes, bits=8, code=6), "mu-law": wav(codes, bits=8, code=7)}
    made["float"] = wav(noise(5000).astype("f4").tobytes(), bits=32, code=3)
    made["cut"] = made["wav of 16 bits, 2 channels"][:5000]
    made["empty"] = wav(b"")
    try:
        made |= {
            f"{f} {s} {c}": encoded(noise(9001, c) * 0.5, 16000, f, s)
            for f, s in (("FLAC", "PCM_16"), ("FLAC", "PCM_24"), ("OGG", "VORBIS"), ("OGG", "OPUS"), ("AIFF", "PCM_16"))
            for c in (1, 2)
        }
    except ImportError:
        pass
    folder = os.environ.get("PENSTOCK_DATA", "")
    for path in sorted(glob.glob(f"{folder}/audio/*/*")) if folder else ():
        made[os.path.basename(path)] = np.fromfile(path, "u1")
    return made


def decode(fn, pipeline_def, file, kwargs, **options):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, **options)
    def pipe():
        return tuple(fn.decoders.audio(fn.external_source(source=lambda i: [file]), **kwargs))

    pipe = pipe()
    pipe.build()
    samples, rate = pipe.run()
    assert samples.layout() == rate.layout() == ""
    return np.array(samples.at(0)), np.array(rate.at(0))


@pytest.mark.parametrize("kwargs", ARGUMENTS, ids=str)
def test_decoders_audio(kwargs):
    wrong = []
    for name, file in files().items():
        if name == "float" and "dtype" in kwargs and "sample_rate" not in kwargs:
            continue  # DALI does not scale real numbers to the range of integers: 0.5 becomes 0
        theirs = {k: oracle.dali_value(v) for k, v in kwargs.items()}
        want, want_rate = decode(oracle.dali_fn, oracle.pipeline_def, file, theirs, prefetch_queue_depth=1)
        got, rate = decode(penstock.fn, penstock.pipeline_def, file, kwargs)
        assert got.shape == want.shape and got.dtype == want.dtype and rate == want_rate, name
        if not want.size:
            continue
        scale = 1 if want.dtype.kind == "f" else float(np.iinfo(want.dtype).max)
        off = np.abs(got.astype("f8") - want.astype("f8")).max() / scale
        is_exact = not name.startswith(("OGG", "float")) and not name.endswith(".ogg")
        is_exact &= not {"sample_rate", "downmix"} & kwargs.keys()
        allowed = 0 if is_exact else 1e-4 if "dtype" not in kwargs else 1.01 / 32767
        if not off <= allowed:
            wrong.append(f"{name}: off by {off}")
    assert not wrong
