# SPDX-License-Identifier: Apache-2.0
"""readers.sequence: the frames of a sequence, and their pixels compared with decoders.image."""

import os

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("streams")
    rng = np.random.default_rng(0)
    for k, (stream, n) in enumerate((("b", 7), ("a", 4), ("empty", 0), ("short", 1))):
        (root / stream).mkdir()
        for i in range(n):
            small = rng.integers(0, 255, (3, 4, 3), "u1")
            picture = Image.fromarray(small).resize((30 + k, 20), Image.BICUBIC)
            picture.save(root / stream / f"{i:02}.{'png' if i == 2 else 'jpg'}")
    (root / "a" / "note.txt").write_text("x")
    (root / "a" / "deeper").mkdir()
    (root / "top.jpg").write_bytes((root / "a" / "00.jpg").read_bytes())
    return root


def build(root, batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        return fn.readers.sequence(name="r", file_root=str(root), **kwargs)

    return pipe()


def decoded(path, image_type):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.decoders.image(fn.readers.file(files=[str(path)])[0], output_type=image_type)

    return np.array(pipe().run()[0].at(0))


@pytest.mark.parametrize("image_type", [types.RGB, types.BGR, types.GRAY, types.ANY_DATA])
@pytest.mark.parametrize("length, step, stride", [(1, 1, 1), (3, 1, 1), (2, 3, 1), (2, 1, 3), (3, 2, 2), (7, 1, 1)])
def test_sequences(root, length, step, stride, image_type):
    wanted = []
    for stream in ("a", "b", "empty", "short"):
        files = sorted(f for f in os.listdir(root / stream) if f.endswith(("jpg", "png")))
        for i in range(0, len(files), step):
            frames = files[i : i + (length - 1) * stride + 1 : stride]
            if len(frames) == length:
                wanted.append([root / stream / f for f in frames])
    pipe = build(root, sequence_length=length, step=step, stride=stride, image_type=image_type)
    assert pipe.epoch_size("r") == len(wanted)
    for frames in wanted:
        (out,) = pipe.run()
        assert out.layout() == "FHWC"
        np.testing.assert_array_equal(np.array(out.at(0)), np.stack([decoded(f, image_type) for f in frames]))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_exif_orientation(tmp_path, orientation):
    (tmp_path / "s").mkdir()
    exif = Image.Exif()
    exif[0x112] = orientation
    x = np.random.default_rng(0).integers(0, 255, (20, 31, 3), "u1")
    Image.fromarray(x).save(tmp_path / "s" / "0.jpg", exif=exif)
    (out,) = build(tmp_path, sequence_length=1).run()
    np.testing.assert_array_equal(np.array(out.at(0))[0], decoded(tmp_path / "s" / "0.jpg", types.RGB))


def test_bad_frames_are_bad_samples(root, tmp_path):
    (tmp_path / "s").mkdir()
    for i, source in enumerate(("a/00.jpg", "a/01.jpg", "b/00.jpg", "a/note.txt")):
        (tmp_path / "s" / f"{i}.jpg").write_bytes((root / source).read_bytes())
    pipe = build(tmp_path, sequence_length=2)
    assert len(pipe.run()[0]) == 1
    with pytest.raises(RuntimeError, match="frame 1: it has 20 x 30 pixels of 3 channels, frame 0 has 20 x 31") as e:
        pipe.run()
    assert "s/1.jpg" in str(e.value)
    with pytest.raises(RuntimeError, match="frame 1: ") as e:
        pipe.run()
    assert "s/2.jpg" in str(e.value)
    (out,) = build(tmp_path, batch_size=3, on_error="skip", sequence_length=2).run()
    assert len(out) == 1


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"sequence_length": 0}, "sequence_length takes at least 1"),
        ({"sequence_length": 1, "step": 0}, "step takes at least 1"),
        ({"sequence_length": 1, "stride": -1}, "stride takes at least 1"),
        ({"sequence_length": 1, "image_type": types.YCbCr}, "image_type takes RGB"),
        ({"sequence_length": 8}, "no sequences of 8 frames"),
    ],
    ids=str,
)
def test_errors(root, kwargs, error):
    with pytest.raises(ValueError, match=error):
        build(root, **kwargs).build()
