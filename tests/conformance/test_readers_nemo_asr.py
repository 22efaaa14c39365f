# SPDX-License-Identifier: Apache-2.0
"""readers.nemo_asr compared with the real DALI: outputs, order and metadata for its arguments.

Deliberate differences: samples have the path as source_info. Invalid lines end DALI or are omitted, so they are tested
in tests/operators/read/test_nemo_asr.py."""

import json
import wave

import numpy as np
import pytest

from conformance.reader_runs import ORDERS, compare, refuses
from penstock import types

NAME = "readers.nemo_asr"
RATES = (16000, 8000, 44100, 22050)


@pytest.fixture(scope="module")
def manifest(tmp_path_factory):
    folder, rng, lines = tmp_path_factory.mktemp("nemo"), np.random.default_rng(0), []
    for i in range(12):
        rate, channels = RATES[i % 4], 1 + i % 3
        x = rng.integers(-9000, 9000, (int(rate * rng.uniform(0.2, 2)), channels), "i2")
        entry = {"audio_filepath": str(folder / f"{i}.wav"), "text": f"t{i} \u00fc", "duration": len(x) / rate}
        with wave.open(entry["audio_filepath"], "wb") as f:
            f.setparams((channels, 2, rate, 0, "NONE", ""))
            f.writeframes(x.tobytes())
        if i % 3:
            entry |= {"offset": 0.0531} if i % 3 == 2 else {"offset": 0.0531, "duration": 0.1237}
        if i == 5:
            del entry["duration"], entry["text"]
        lines.append(json.dumps(entry))
    (folder / "train.json").write_text("\n".join(lines))
    return str(folder / "train.json")


@pytest.mark.parametrize(
    "kwargs",
    [
        {"downmix": False},
        {"downmix": False, "dtype": int(types.INT32)},
        {"downmix": False, "dtype": int(types.INT16), "read_idxs": True},
        {"downmix": False, "min_duration": 0.5},
        {"downmix": False, "max_duration": 1.0, "read_text": False},
        {"downmix": False, "min_duration": 0.4, "max_duration": 1.3, "read_sample_rate": False, "read_idxs": True},
        {"downmix": False, "read_text": False, "read_sample_rate": False},
    ],
    ids=str,
)
def test_outputs(manifest, kwargs):
    compare(NAME, {"manifest_filepaths": [manifest]} | kwargs, iterations=4, sources=False)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(manifest, order):
    kwargs = {"manifest_filepaths": [manifest], "downmix": False, "read_idxs": True}
    compare(NAME, kwargs | order, iterations=12, sources=False)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"manifest_filepaths": ["/no/such.json"]},
        {"manifest_filepaths": None},
        {"min_duration": 100.0},
        {"dtype": int(types.UINT8)},
        {"shuffle_after_epoch": True, "random_shuffle": True},
        {"shuffle_after_epoch": True, "stick_to_shard": True},
    ],
    ids=str,
)
def test_errors(manifest, kwargs):
    kwargs = {"manifest_filepaths": [manifest]} | kwargs
    ours, dalis = refuses(NAME, {k: v for k, v in kwargs.items() if v is not None})
    assert ours == dalis
