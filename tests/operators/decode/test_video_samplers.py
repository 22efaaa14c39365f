# SPDX-License-Identifier: Apache-2.0
"""Samplers of decoders.video: frames at equal distances, key frames, clips at random positions. PyAV is the reference
for key frames."""

import io

import numpy as np
import pytest

from encoded_videos import clip
from optional_packages import Package, needs
from penstock import fn, pipeline_def

av = Package("av")
pytestmark = needs("av")


GROUPS = (("g", "6"), ("bf", "2"), ("sc_threshold", "0"))


def long():
    return clip(n=40, codec_options=GROUPS)


def short():
    return clip(n=7, codec="libvpx", container="webm", codec_options=(("g", "3"),))


def run(files, device="cpu", batches=1, **arguments):
    @pipeline_def(batch_size=len(files), num_threads=2, seed=5, device_id=None if device == "cpu" else 0)
    def pipe():
        encoded = fn.external_source(lambda: [np.frombuffer(f, "u1") for f in files], batch=True)
        given = {k: v() if callable(v) else v for k, v in arguments.items()}
        return fn.decoders.video(encoded, device=device, **given)

    p, found = pipe(), []
    for _ in range(batches):
        (out,) = p.run()
        out = out if device == "cpu" else out.as_cpu()
        found += [np.array(out.at(i)) for i in range(len(files))]
    return found


def keys_of(data):
    with av.open(io.BytesIO(data)) as container:
        return [i for i, frame in enumerate(container.decode(video=0)) if frame.key_frame]


def frames_of(data):
    """All frames, which test_video compares with PyAV's."""
    (video,) = run([data])
    assert len({frame.tobytes() for frame in video}) == len(video)
    return video


@pytest.mark.parametrize("device", ["cpu", "mixed"])
@pytest.mark.parametrize(
    "arguments", [{}, {"start_frame": 3}, {"end_frame": 13}, {"start_frame": 1, "end_frame": 50}], ids=str
)
@pytest.mark.parametrize("n", [1, 2, 5, 11])
def test_frames_at_equal_distances(n, arguments, device):
    found = run([long(), short()], device, sequence_length=n, uniform_sample=True, **arguments)
    for data, frames in zip([long(), short()], found):
        video = frames_of(data)
        first, end = arguments.get("start_frame", 0), min(arguments.get("end_frame", len(video)), len(video))
        wanted = [int(np.floor(first + i * (end - 1 - first) / max(n - 1, 1) + 0.5)) for i in range(n)]
        np.testing.assert_array_equal(frames, video[wanted])


@pytest.mark.parametrize("device", ["cpu", "mixed"])
@pytest.mark.parametrize(
    "arguments",
    [{}, {"sequence_length": 2}, {"stride": 2}, {"start_frame": 1}, {"start_frame": 6, "end_frame": 19}],
    ids=str,
)
def test_key_frames(arguments, device):
    assert len(keys_of(long())) == 7 and len(keys_of(short())) == 3
    for data, frames in zip([long(), short()], run([long(), short()], device, key_frames=True, **arguments)):
        video = frames_of(data)
        start, end = arguments.get("start_frame", 0), arguments.get("end_frame", len(video))
        wanted = [k for k in keys_of(data) if start <= k < end][:: arguments.get("stride", 1)]
        np.testing.assert_array_equal(frames, video[wanted[: arguments.get("sequence_length")]])


def test_a_clip_is_placed_between_the_first_frame_and_the_last():
    video = frames_of(long())
    for position, first in ((0.0, 0), (1.0, 40 - 9), (0.5, 16), (0.999, 31), (0.01, 0)):
        (frames,) = run([long()], clip_pos=position, sequence_length=5, stride=2)
        np.testing.assert_array_equal(frames, video[first : first + 9 : 2])


def test_clips_at_random_places():
    """All positions occur, about equally often, and the same ones for the same seed."""
    places = lambda: run(
        [short()] * 50, batches=8, sequence_length=3, clip_pos=lambda: fn.random.uniform(range=[0.0, 1.0])
    )
    video, found = frames_of(short()), places()
    clips = {video[i : i + 3].tobytes(): i for i in range(5)}
    counts = np.bincount([clips[f.tobytes()] for f in found], minlength=5)
    assert (
        counts.sum() == 400 and counts.min() > 55 and counts.max() < 110
    )  # each 80, with a deviation of 8; the ends would have 50 if positions were rounded
    assert all(np.array_equal(a, b) for a, b in zip(found, places()))


def test_a_clip_longer_than_the_video_is_padded():
    video = frames_of(short())
    (frames,) = run([short()], sequence_length=9, clip_pos=0.7, pad_mode="edge")
    np.testing.assert_array_equal(frames, video[[0, 1, 2, 3, 4, 5, 6, 6, 6]])
    (frames,) = run([short()], sequence_length=9, clip_pos=0.7, pad_mode="none")
    np.testing.assert_array_equal(frames, video)


WRONG = [
    ({"clip_pos": 0.5}, "`clip_pos` needs `sequence_length`"),
    ({"uniform_sample": True}, "`uniform_sample` needs `sequence_length`"),
    ({"clip_pos": 0.5, "sequence_length": 2, "start_frame": 1}, "Cannot specify both `clip_pos` and `start_frame`"),
    ({"clip_pos": 0.5, "sequence_length": 2, "key_frames": True}, "Cannot specify both `clip_pos` and `key_frames`"),
    ({"frames": [1], "uniform_sample": True}, "Cannot specify both `frames` and any of `uniform_sample`"),
    ({"clip_pos": 1.5, "sequence_length": 2}, "clip_pos takes 0 to 1; got 1.5"),
    ({"clip_pos": float("nan"), "sequence_length": 2}, "clip_pos takes 0 to 1; got nan"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=[str(a) for a, _ in WRONG])
def test_errors(arguments, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        run([long()], **arguments)
