# SPDX-License-Identifier: Apache-2.0
"""Pipelines serialised by DALI 2.4: the files of dali_pipelines/, written by its make.py."""

import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from penstock import Pipeline
from penstock.plugin.triton import repository

FOLDER = Path(__file__).parent / "dali_pipelines"


def png(seed, h, w):
    pixels = np.random.default_rng(seed).integers(0, 255, (h, w, 3), dtype=np.uint8)
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return np.frombuffer(out.getvalue(), np.uint8), pixels


def test_pictures():
    pipe = Pipeline.deserialize(filename=FOLDER / "pictures.dali")
    assert (pipe.max_batch_size, pipe.num_threads, pipe.device_id) == (4, 2, None)
    given = [png(1, 9, 12), png(2, 6, 8)]
    made = [o.as_cpu() for o in pipe.run(DATA=[data for data, _ in given])]
    for i, (_, pixels) in enumerate(given):
        h, w = pixels.shape[:2]
        y, x = round((h - 6) / 2), round((w - 8) / 2)
        window = pixels[y : y + 6, x : x + 8][:, ::-1].astype(np.float32)
        normal = ((window - np.float32([1, 2, 3])) / 4).transpose(2, 0, 1)
        np.testing.assert_array_equal(made[0].at(i), pixels)
        np.testing.assert_allclose(made[1].at(i), normal, atol=1e-5)
        for got, expected in zip(made[2:], (pixels[1:3, 2:], pixels[0], pixels[:, -2])):
            np.testing.assert_array_equal(got.at(i), expected)


def test_numbers():
    """// of integers truncates towards zero, and / gives float32."""
    pipe = Pipeline.deserialize(filename=FOLDER / "numbers.dali")
    x, i = np.float32([0.5, 2.25, 3, 9]), np.int32([0, 1, 3, 5])
    made = pipe.run(X=[x], I=[i])
    f = np.float32
    expected = [
        *(-x, np.sqrt(x), x / f(3), i // 2, (i / 2).astype(f), np.clip(x, 0, 2.5), x * 2 + i.astype(f), 10 - i),
        *(x > 2, i != 3, i <= 3, (i > 1) & (i < 4), i**2, np.maximum(x, i.astype(f)), x),
        np.arange(6, dtype=np.uint8).reshape(2, 3),
    ]
    assert len(made) == len(expected)
    for got, wanted in zip(made, expected):
        assert np.asarray(got.at(0)).dtype == wanted.dtype
        np.testing.assert_allclose(np.asarray(got.at(0), "f8"), np.asarray(wanted, "f8"), rtol=1e-6)


def test_what_cannot_be_taken_over():
    with pytest.raises(ValueError, match=r"DALI's operator _conditional__Split.*dali\.py with @autoserialize"):
        Pipeline.deserialize(filename=FOLDER / "branches.dali")


def test_other_operators():
    data = (FOLDER / "pictures.dali").read_bytes()
    with pytest.raises(ValueError, match="DALI's operator decoders__Imagf, which can't be taken over"):
        Pipeline.deserialize(data.replace(b"decoders__Image", b"decoders__Imagf"))
    with pytest.raises(ValueError, match="fn.decoders.image has no argument output_typo"):
        Pipeline.deserialize(data.replace(b"output_type", b"output_typo"))


@pytest.mark.parametrize("name", ["pictures", "numbers"])
def test_damage(name):
    """Any damage is a ValueError."""
    data, rng = (FOLDER / f"{name}.dali").read_bytes(), np.random.default_rng(1)
    refused = 0
    for k in range(300):
        changed = bytearray(data)
        if k % 3:
            for at in rng.integers(1, len(data), 3):
                changed[at] = rng.integers(256)
        else:
            changed = changed[: rng.integers(1, len(data))]
        try:
            Pipeline.deserialize(bytes(changed))
        except ValueError:
            refused += 1
    assert refused > 50


def test_a_model_of_the_dali_backend(tmp_path):
    (tmp_path / "model.dali").write_bytes((FOLDER / "pictures.dali").read_bytes())
    pipe = repository.open_pipeline(tmp_path, batch_size=2)
    data, pixels = png(3, 10, 10)
    np.testing.assert_array_equal(pipe.run(DATA=[data])[0].at(0), pixels)
