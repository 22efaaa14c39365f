# SPDX-License-Identifier: Apache-2.0
"""Decoding and resizing at once against decoding, then resizing."""

import numpy as np
import pytest

from encoded_videos import clip
from optional_packages import needs
from penstock import PipelineError, fn, pipeline_def, types

pytestmark = needs("av")


NAME = "fn.decoders.video and fn.resize"
VIDEOS = {
    "8 bits": {"size": (50, 66)},
    "10 bits, 4:2:2": {"pixels": "yuv422p10le", "size": (50, 66)},
    "4:4:4": {"pixels": "yuv444p", "size": (51, 67)},
    "VP9, odd size": {"codec": "libvpx-vp9", "container": "webm", "size": (51, 67), "n": 8},
}
RESIZING = {
    "smaller": {"size": (20, 30)},
    "much smaller, some rows": {"size": (9, 7), "antialias": False},
    "smaller, some rows, cubic": {"size": (11, 13), "antialias": False, "interp_type": types.INTERP_CUBIC},
    "nearest": {"size": (17, 90), "interp_type": types.INTERP_NN},
    "larger": {"resize_shorter": 80, "interp_type": types.INTERP_LANCZOS3},
    "flipped": {"resize_x": -20, "resize_y": 31},
    "region": {"size": (16, 16), "roi_start": [5, 9.5], "roi_end": [30, 40.25]},
    "relative region, backwards": {
        "size": (16, 16), "roi_start": [0.9, 0.1], "roi_end": [0.2, 0.8], "roi_relative": True, "antialias": False,
    },
    "Pillow's": {"size": (13, 40), "rule": "pillow"},
    "PyTorch's": {"size": (13, 40), "rule": "torch", "antialias": False},
    "float": {"size": (20, 30), "dtype": types.FLOAT},
    "mode": {"size": (20, 20), "mode": "not_larger"},
}  # fmt: skip


def both(decoding, resizing, threads=2):
    """By one operator, and by two, as the frames in between are also an output."""

    @pipeline_def(batch_size=3, num_threads=threads)
    def pipe():
        files = fn.external_source(lambda: [np.frombuffer(clip(**VIDEOS[v]), "u1") for v in list(VIDEOS)[:3]])
        one = fn.resize(fn.decoders.video(files, **decoding), **resizing)
        frames = fn.decoders.video(files, **decoding)
        return one, fn.resize(frames, **resizing), frames

    p = pipe()
    text = p.explain()
    assert text.count(NAME) == 1 and text.count("fn.resize(") == 2
    return p.run()


@pytest.mark.parametrize("name", RESIZING)
def test_same_values(name):
    one, two, _ = both({"start_frame": 3, "sequence_length": 4}, RESIZING[name])
    for a, b in zip(one, two):
        assert np.array(a).dtype == (np.float32 if name == "float" else np.uint8)
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "decoding",
    [
        {"frames": [7, 2, 2, 19, 30, 31], "fill_value": [9, 80, 200]},
        {"start_frame": 15, "sequence_length": 9, "stride": 2, "pad_mode": "reflect"},
        {"sequence_length": 3, "image_type": types.YCbCr},
        {"sequence_length": 0},
    ],
)
@pytest.mark.parametrize("name", ["smaller", "much smaller, some rows", "float"])
def test_frames_in_any_order(decoding, name):
    one, two, _ = both(decoding, RESIZING[name], threads=1)
    for a, b in zip(one, two):
        np.testing.assert_array_equal(a, b)


LARGE = {
    "15 rows become 7": {"size": (224, 224)},
    "3 rows become 1, which need two": {"size": (160, 40)},
    "5 rows become 1": {"size": (96, 50)},
    "half": {"size": (240, 427), "interp_type": types.INTERP_CUBIC},
    "8 rows become 3": {"size": (180, 90), "interp_type": types.INTERP_LANCZOS3},
    "some rows": {"size": (224, 224), "antialias": False},
    "region": {"size": (112, 224), "roi_start": [0, 3], "roi_end": [240, 801]},
    "backwards": {"size": (224, 224), "roi_start": [480, 854], "roi_end": [0, 0]},
    "larger": {"size": (500, 860)},
}


@pytest.mark.parametrize("name", LARGE)
def test_pictures_that_are_resized_in_bands(name):
    """Bands of rows that fit into a core's cache. Some taps at a band's edge have a weight of zero: their row is not in
    the band."""
    data = np.frombuffer(clip(size=(480, 854), n=2), "u1")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        frames = fn.decoders.video(types.Constant(data))
        return (
            fn.resize(fn.decoders.video(types.Constant(data)), **LARGE[name]),
            fn.resize(frames, **LARGE[name]),
            frames,
        )

    p = pipe()
    assert p.explain().count(NAME) == 1
    one, two, _ = p.run()
    np.testing.assert_array_equal(one.as_array(), two.as_array())


def test_odd_size_of_another_codec():
    data = np.frombuffer(clip(**VIDEOS["VP9, odd size"]), "u1")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        frames = fn.decoders.video(types.Constant(data))
        return (
            fn.resize(fn.decoders.video(types.Constant(data)), size=(10, 12)),
            fn.resize(frames, size=(10, 12)),
            frames,
        )

    one, two, _ = pipe().run()
    np.testing.assert_array_equal(one.as_array(), two.as_array())


def test_arguments_that_are_data():
    """Those of the decoder may be, those of resize keep the two apart."""
    data = np.frombuffer(clip(**VIDEOS["8 bits"]), "u1")

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        start = fn.external_source(lambda: [np.int32(1), np.int32(9)])
        one = fn.resize(fn.decoders.video(types.Constant(data), start_frame=start, sequence_length=2), size=(20, 30))
        frames = fn.decoders.video(types.Constant(data), start_frame=start, sequence_length=2)
        size = fn.external_source(lambda: [np.float32([20, 30])] * 2)
        return one, fn.resize(frames, size=size)

    p = pipe()
    assert p.explain().count(NAME) == 1
    one, two = p.run()
    np.testing.assert_array_equal(one.as_array(), two.as_array())


def test_a_bad_video_names_its_operators():
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.resize(fn.decoders.video(types.Constant(np.zeros(20, "u1"))), size=(4, 4))

    with pytest.raises(PipelineError, match=NAME + r"(.|\n)*not a video that can be read"):
        pipe().run()
