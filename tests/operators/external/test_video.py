# SPDX-License-Identifier: Apache-2.0
"""experimental.inputs.video: batches of sequences from a fed video."""

import numpy as np
import pytest

from encoded_videos import clip, decoded
from optional_packages import needs
from penstock import PipelineError, fn, pipeline_def

pytestmark = needs("av")


KINDS = {
    "h264": {"codec_options": (("g", "6"), ("bf", "2"))},
    "vp9": {"codec": "libvpx-vp9", "container": "webm", "n": 13},
    "mpeg4": {"codec": "mpeg4", "n": 24},
}


def made(batch_size=3, **arguments):
    @pipeline_def(batch_size=batch_size, num_threads=2)
    def pipe():
        return fn.experimental.inputs.video(name="video", **arguments)

    return pipe()


def encoded(name):
    return np.frombuffer(clip(**KINDS[name]), "u1")


@pytest.mark.parametrize("policy", ["partial", "pad"])
@pytest.mark.parametrize("length", [1, 4, 5, 7, 20, 33])
@pytest.mark.parametrize("name", KINDS)
def test_batches(name, length, policy):
    pipe, video = made(sequence_length=length, last_sequence_policy=policy), decoded(clip(**KINDS[name]))
    pipe.feed_input("video", encoded(name)[None])
    sequences = [video[i : i + length] for i in range(0, len(video), length)]
    if policy == "pad":
        sequences[-1] = np.concatenate([sequences[-1], np.zeros((length - len(sequences[-1]), *video.shape[1:]), "u1")])
    while sequences:
        (out,) = pipe.run()
        want, sequences = sequences[:3], sequences[3:]
        assert len(out) == len(want) and out.layout() == "FHWC"
        for i, w in enumerate(want):
            got = np.array(out.at(i))
            assert got.shape == w.shape and np.abs(got.astype("i4") - w).max() <= 1
    with pytest.raises(RuntimeError, match="no data was fed"):
        pipe.run()


def test_one_video_after_the_other():
    pipe = made(batch_size=4, sequence_length=5)
    for name in ("h264", "vp9"):
        pipe.feed_input("video", [encoded(name)])
    counts = [[x[0] for x in pipe.run()[0].shape()] for _ in range(2)]
    assert counts == [[5, 5, 5, 5], [5, 5, 3]]
    pipe.feed_input("video", [encoded("mpeg4")])
    assert [x[0] for x in pipe.run()[0].shape()] == [5, 5, 5, 5]


def test_what_is_fed_is_copied():
    pipe, data = made(sequence_length=5), encoded("h264").copy()
    pipe.feed_input("video", [data])
    data[:] = 0
    assert len(pipe.run()[0]) == 3


def test_a_sequence_knows_its_frames():
    """The inputs that fn._video.fed_video passes to the decoder."""

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return tuple(fn._video.fed_video(name="video", sequence_length=9))

    p = pipe()
    p.feed_input("video", [encoded("h264")])
    video, frames = p.run()
    assert [np.array(frames.at(i)).tolist() for i in range(3)] == [[*range(9)], [*range(9, 18)], [18, 19]]
    assert bytes(video.at(2)) == clip(**KINDS["h264"])


def test_operators_behind_it():
    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        return fn.resize(fn.experimental.inputs.video(name="video", sequence_length=4), size=(24, 32))

    p = pipe()
    p.feed_input("video", [encoded("h264")])
    assert p.run()[0].as_array().shape == (2, 4, 24, 32, 3)


WRONG = [
    ({"sequence_length": 0}, "sequence_length takes at least 1"),
    ({"sequence_length": 2, "last_sequence_policy": "drop"}, "'partial' or 'pad'; got 'drop'"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG)
def test_wrong_arguments(arguments, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        made(**arguments).build()


def test_wrong_data():
    pipe = made(sequence_length=4)
    for data in ([encoded("h264")] * 2, [encoded("h264").reshape(1, -1)], [np.zeros(5, "f4")]):
        with pytest.raises(RuntimeError, match="one encoded video at a time"):
            pipe.feed_input("video", data)
    with pytest.raises(RuntimeError, match="not a video"):
        pipe.feed_input("video", [np.zeros(100, "u1")])
    cut = encoded("vp9")
    pipe.feed_input("video", [cut[: len(cut) // 2]])
    with pytest.raises(PipelineError, match="frame"):
        for _ in range(4):
            pipe.run()
