# SPDX-License-Identifier: Apache-2.0
"""Images written to files, read back by Pillow."""

import os

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def

RNG = np.random.default_rng(5)
COLOUR = [RNG.integers(0, 256, (h, w, 3), "u1") for h, w in ((4, 5), (1, 1), (3, 70))]
GREY = [x[..., :1].copy() for x in COLOUR]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def dump(samples, layout="HWC", device="cpu", **kwargs):
    @pipeline_def(batch_size=len(samples), device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout=layout)
        return fn.dump_image(x.gpu() if device == "gpu" else x, **kwargs)

    (out,) = pipe().run()
    return out


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("samples", [COLOUR, GREY], ids=["colour", "grey"])
def test_files(samples, device):
    out = dump(samples, suffix="seen", device=device)
    assert out.layout() == "HWC"
    for i, x in enumerate(samples):
        np.testing.assert_array_equal(np.asarray(Image.open(f"{i}-seen-0.ppm")).reshape(x.shape), x)
        np.testing.assert_array_equal((out.as_cpu() if device == "gpu" else out).at(i), x)
    assert sorted(os.listdir()) == [f"{i}-seen-0.ppm" for i in range(3)]


def test_nothing_is_written_unless_used_or_preserved():
    @pipeline_def(batch_size=1)
    def pipe(preserve):
        x = fn.external_source(source=lambda i: COLOUR[:1])
        fn.dump_image(x, preserve=preserve)
        return x

    pipe(False).run()
    assert not os.listdir()
    pipe(True).run()
    assert os.listdir() == ["0--0.ppm"]


def test_the_files_are_those_of_the_last_batch():
    @pipeline_def(batch_size=1, prefetch_queue_depth=3, num_threads=3)
    def pipe():
        return fn.dump_image(fn.external_source(source=lambda i: [np.full((1, 1, 1), i, "u1")], num_outputs=None))

    p = pipe()
    for i in range(20):
        assert p.run()[0].at(0).item() == i
    assert int(np.asarray(Image.open("0--0.ppm")).item()) >= 19


@pytest.mark.parametrize(
    "samples, layout, text",
    [
        ([np.zeros((4, 5), "u1")], "HW", "images have the layout HWC; got HW and 2 dimensions"),
        ([np.zeros((3, 4, 5), "u1")], "CHW", "images have the layout HWC; got CHW"),
        ([np.zeros((2, 4, 5, 3), "u1")], "FHWC", "got FHWC and 4 dimensions"),
        ([np.zeros((4, 5, 3), "f4")], "HWC", "images are of type uint8; got float32"),
        ([COLOUR[0], np.zeros((4, 5, 4), "u1")], "HWC", r"images have 1 or 3 channels; got shape \[4, 5, 4\]"),
        ([COLOUR[0], np.zeros((0, 5, 3), "u1")], "HWC", "an image without pixels can't be written"),
    ],
)
def test_errors(samples, layout, text):
    with pytest.raises(RuntimeError, match=text):
        dump(samples, layout)
    assert not os.listdir()


def test_a_folder_that_cannot_be_written_to(folder):
    with pytest.raises(RuntimeError, match=r"No such file or directory: '0-a/b-0\.ppm'"):
        dump(COLOUR[:1], suffix="a/b")


def test_input_layout():
    with pytest.raises(ValueError, match="input_layout is HWC; got 'CHW'"):
        dump(COLOUR, input_layout="CHW")


def test_a_name_that_no_file_can_have():
    with pytest.raises(ValueError, match="fn.dump_image: no file's name has a zero byte"):
        dump(GREY, suffix="a\0b")
