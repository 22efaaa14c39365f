# SPDX-License-Identifier: Apache-2.0
"""readers.video and readers.video_resize compared with PyAV's frames, by the rules of DALI's reader."""

import numpy as np
import pytest

from encoded_videos import clip, decoded, planes
from optional_packages import needs
from penstock import PipelineError, fn, pipeline_def, types

pytestmark = needs("av")


CLIPS = {
    "h264.mp4": {"codec_options": (("g", "6"), ("bf", "2"))},
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "6"),)},
    "uneven.mp4": {"times": tuple(int(100 * i + 37 * np.sin(i)) for i in range(20)), "codec_options": (("bf", "2"),)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for name, made in CLIPS.items():
        (root / name).write_bytes(clip(**made))
    for name, source in (("b/2.mp4", "h264.mp4"), ("a/1.webm", "vp9.webm")):
        (root / "classes" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "classes" / name).write_bytes((root / source).read_bytes())
    return root


def epoch(operator="video", n=1, options=None, **arguments):
    """All samples of an epoch, each a list of its outputs."""

    @pipeline_def(batch_size=n, num_threads=2, **(options or {}))
    def pipe():
        outputs = getattr(fn.readers, operator)(name="reader", **arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    p = pipe()
    p.build()
    size = next(iter(p.reader_meta().values()))["epoch_size"]
    samples = []
    while len(samples) < size:
        outputs = p.run()
        samples += [[np.array(o.at(i)) for o in outputs] for i in range(len(outputs[0]))]
    return samples[:size]


def wanted(start, end, length, stride, step, padded):
    """The frames of the sequences in a range, with None for missing ones."""
    step = length * stride if step < 0 else step
    found, first = [], start
    while first < end:
        frames = [first + k * stride for k in range(length)]
        if frames[-1] < end or padded:
            found.append([f if f < end else None for f in frames])
        first += step
    return found


def check(got, sequences, video):
    assert len(got) == len(sequences) > 0
    for (frames, _, numbers, *_), want in zip(got, sequences):
        assert numbers.tolist() == [-1 if f is None else f for f in want]
        for frame, f in zip(frames, want):
            exact = np.zeros_like(video[0]) if f is None else video[f]
            assert np.abs(frame.astype("i4") - exact).max() <= 1


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("length", "stride", "step"), [(4, 1, -1), (3, 3, 2), (1, 1, 5), (2, 7, 1), (4, 6, -1)])
@pytest.mark.parametrize("name", CLIPS)
def test_sequences(folder, name, length, stride, step, padded):
    path = folder / name
    got = epoch(
        n=3, filenames=[str(path)], labels=[4], enable_frame_num="sequence", sequence_length=length, stride=stride,
        step=step, pad_sequences=padded,
    )  # fmt: skip
    check(got, wanted(0, 20, length, stride, step, padded), decoded(path.read_bytes()))
    assert all(s[1].tolist() == [4] for s in got)


def test_step_of_another_length_than_the_last_frame(folder):
    """Unlike DALI's other reader, this one does not require a stride after the last frame."""
    arguments = {"filenames": [str(folder / "h264.mp4")], "labels": [1], "sequence_length": 4, "stride": 6}
    assert len(epoch(**arguments)) == 1
    with pytest.raises((ValueError, RuntimeError), match="no video is long enough"):
        epoch(**arguments | {"sequence_length": 5})


LINES = [
    ("2 8", {"file_list_frame_num": True}, (2, 8)),
    ("0 -1", {"file_list_frame_num": True}, (0, 19)),
    ("-4 -1", {"file_list_frame_num": True}, (16, 19)),
    ("-4", {"file_list_frame_num": True}, (16, 20)),
    ("16 20", {"file_list_frame_num": True}, (16, 20)),
    ("", {"file_list_frame_num": True}, (0, 20)),
    ("0.2 0.8", {}, (2, 8)),
    ("0.21 0.79", {}, (3, 7)),
    ("0.21 0.79", {"file_list_include_preceding_frame": True}, (2, 8)),
    ("0.2 0.8", {"file_list_include_preceding_frame": True}, (2, 8)),
    ("1.51 2", {}, (16, 20)),
    ("1.51", {"file_list_include_preceding_frame": True}, (15, 20)),
    ("-0.49", {}, (16, 20)),
    ("-0.49 -0.1", {"file_list_include_preceding_frame": True}, (15, 19)),
]


@pytest.mark.parametrize(("line", "arguments", "want"), LINES)
def test_file_lists(folder, tmp_path, line, arguments, want):
    (tmp_path / "list.txt").write_text(f"{folder}/h264.mp4 3 {line}\n\n")
    got = epoch(file_list=str(tmp_path / "list.txt"), sequence_length=1, enable_frame_num="scalar", **arguments)
    assert [int(n[0]) for *_, n in got] == list(range(*want))


WRONG_LINES = [
    ("3 8 2", {"file_list_frame_num": True}, "range from 8 to 2 .* is not one of"),
    ("3 8 21", {"file_list_frame_num": True}, "has 20 frames"),
    ("3 -21 4", {"file_list_frame_num": True}, "has 20 frames"),
    ("3 1 2.1", {}, "ends at 2$"),
    ("3 1.5 0.5", {}, "range from 1.5 to 0.5"),
    ("-1", {}, "label"),
    ("x", {}, "label"),
    ("3 nan", {}, "line 1"),
]


@pytest.mark.parametrize(("line", "arguments", "text"), WRONG_LINES)
def test_wrong_lines(folder, tmp_path, line, arguments, text):
    (tmp_path / "list.txt").write_text(f"{folder}/h264.mp4 {line}\n")
    with pytest.raises((ValueError, RuntimeError), match=text):
        epoch(file_list=str(tmp_path / "list.txt"), sequence_length=1, **arguments)


def test_an_empty_range_is_left_out_with_a_warning(folder, tmp_path):
    (tmp_path / "list.txt").write_text(f"{folder}/h264.mp4 3 5 5\n{folder}/h264.mp4 4 5 7\n")
    with pytest.warns(UserWarning, match="line 1 .* left out"):
        got = epoch(file_list=str(tmp_path / "list.txt"), sequence_length=1, file_list_frame_num=True)
    assert [label.tolist() for _, label in got] == [[4], [4]]


def test_timestamps_of_uneven_frames(folder):
    got = epoch(
        filenames=[str(folder / "uneven.mp4")], labels=[0], sequence_length=6, pad_sequences=True,
        enable_timestamps=True,
    )  # fmt: skip
    times = np.array(sorted(CLIPS["uneven.mp4"]["times"])) / 1000
    times = np.concatenate([times - times[0], [-1] * 4])
    np.testing.assert_allclose(np.concatenate([t for *_, t in got]), times, atol=1e-3)


def test_labels(folder):
    path = str(folder / "h264.mp4")
    assert len(epoch(filenames=[path], sequence_length=20)[0]) == 1
    got = epoch(filenames=[path, path], labels=[], sequence_length=20)
    assert [label.tolist() for _, label in got] == [[0], [1]]
    got = epoch(file_root=str(folder / "classes"), sequence_length=20)
    assert [(label.tolist(), label.dtype.name) for _, label in got] == [([0], "int32"), ([1], "int32")]
    assert np.abs(got[0][0].astype("i4") - decoded((folder / "vp9.webm").read_bytes())).max() <= 1


def test_types(folder):
    common = {"filenames": [str(folder / "h264.mp4")], "sequence_length": 5}
    ((plain,), *_) = epoch(**common)
    ((floats,), *_) = epoch(dtype=types.FLOAT, **common)
    ((scaled,), *_) = epoch(dtype=types.FLOAT, normalized=True, **common)
    assert floats.dtype == scaled.dtype == np.float32
    np.testing.assert_array_equal(floats, plain.astype("f4"))
    np.testing.assert_array_equal(scaled, plain / np.float32(255))


@pytest.mark.parametrize("pixels", ["yuv420p", "yuv444p", "yuv420p10le"])
def test_ycbcr(tmp_path, pixels):
    import io

    import av

    path = tmp_path / "clip.mp4"
    path.write_bytes(clip(pixels=pixels, size=(34, 50)))
    with av.open(io.BytesIO(path.read_bytes())) as file:
        pictures = [planes(f) for f in file.decode(video=0)]
    for (frames,), k in zip(epoch(filenames=[str(path)], sequence_length=5, image_type=types.YCbCr), range(0, 20, 5)):
        for frame, ((y, u, v), bits) in zip(frames, pictures[k:]):
            np.testing.assert_array_equal(frame[..., 0], np.minimum(np.floor(y / 2 ** (bits - 8) + 0.5), 255))
            for channel, c in ((1, u), (2, v)):
                if pixels == "yuv444p":
                    np.testing.assert_array_equal(frame[..., channel], c)
                else:  # at every second pixel of a row chroma lies between two rows only
                    rows = 0.75 * c + 0.25 * np.concatenate([c[:1], c[:-1]])
                    exact = np.minimum(rows / 2 ** (bits - 8), 255)
                    assert np.abs(frame[::2, ::2, channel] - exact).max() <= 0.5


def test_resize(folder):
    arguments = {"filenames": [str(folder / "h264.mp4")], "sequence_length": 5}
    ratio = {"resize_shorter": 24, "interp_type": types.INTERP_CUBIC}

    @pipeline_def(batch_size=4, num_threads=2)
    def pipe():
        frames = fn.readers.video(**arguments)
        resized = fn.readers.video_resize(**arguments, **ratio)
        floats = fn.readers.video_resize(**arguments, **ratio, dtype=types.FLOAT, normalized=True)
        by_data = fn.readers.video_resize(**arguments, size=fn.random.uniform(range=(20, 20.4), shape=2))
        return (
            frames,
            resized,
            fn.resize(frames, **ratio),
            floats,
            fn.resize(frames, **ratio, dtype=types.FLOAT),
            by_data,
        )

    _, resized, want, floats, want_floats, by_data = (x.as_array() for x in pipe().run())
    assert resized.shape == (4, 5, 24, 32, 3)
    np.testing.assert_array_equal(resized, want)
    np.testing.assert_allclose(floats, want_floats / 255, rtol=1e-6)
    assert by_data.shape == (4, 5, 20, 20, 3)


def test_shards_shuffles_and_checkpoints(folder):
    arguments = {
        "filenames": [str(folder / name) for name in CLIPS],
        "labels": [],
        "sequence_length": 4,
        "step": 2,
        "enable_frame_num": "scalar",
    }
    names = lambda samples: [(int(label[0]), int(n[0])) for _, label, n in samples]
    plain = names(epoch(**arguments))
    assert plain == [(f, n) for f in range(3) for n in range(0, 17, 2)]
    shuffled = names(epoch(random_shuffle=True, seed=3, **arguments))
    assert shuffled != plain and sorted(shuffled) == plain

    @pipeline_def(batch_size=4, num_threads=2, enable_checkpointing=True)
    def pipe():
        return tuple(fn.readers.video(shuffle="global", seed=3, num_shards=2, shard_id=1, **arguments))

    p = pipe()
    for _ in range(3):
        p.run()
    q = pipe(checkpoint=p.checkpoint())
    for a, b in zip(p.run(), q.run()):
        np.testing.assert_array_equal(a.as_array(), b.as_array())


WRONG = [
    ({"filenames": [], "sequence_length": 2}, "one of 'filenames', 'file_root' and 'file_list' is needed"),
    ({"filenames": ["x"], "file_list": "y", "sequence_length": 2}, "one of 'filenames'"),
    ({"filenames": ["x", "y"], "labels": [1], "sequence_length": 2}, "1 labels for 2 files"),
    ({"filenames": ["x"], "sequence_length": 1, "enable_frame_num": True}, "enable_frame_num needs a `file_list`"),
    ({"filenames": ["x"], "sequence_length": 1, "enable_timestamps": True}, "enable_timestamps needs a `file_list`"),
    ({"filenames": ["x"], "sequence_length": 1, "dtype": types.INT16}, "dtype takes UINT8 or FLOAT; got INT16"),
    ({"filenames": ["x"], "sequence_length": 1, "image_type": types.BGR}, "image_type takes RGB or YCbCr; got BGR"),
    ({"filenames": ["x"], "sequence_length": 1, "pad_mode": "edge"}, "unexpected argument 'pad_mode'"),
]


@pytest.mark.parametrize("operator", ["video", "video_resize"])
@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=[t for _, t in WRONG])
def test_errors(operator, arguments, text):
    with pytest.raises((ValueError, TypeError, RuntimeError), match=text):
        epoch(operator, **arguments, **({"resize_x": 20} if operator == "video_resize" else {}))


def test_bad_files_are_bad_samples(folder, tmp_path):
    good, bad = str(folder / "h264.mp4"), str(tmp_path / "bad.mp4")
    open(bad, "wb").write(b"no video at all")
    with pytest.raises(PipelineError, match=r"bad.mp4"):
        epoch(n=5, filenames=[good, bad], sequence_length=5)
    got = epoch(n=5, options={"on_error": "skip"}, filenames=[good, bad], sequence_length=5, labels=[1, 2])
    assert {label.tolist()[0] for _, label in got} == {1}


def test_former_names(folder):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        path = str(folder / "h264.mp4")
        return fn.video_reader(filenames=[path], sequence_length=3), fn.video_reader_resize(
            filenames=[path], sequence_length=3, resize_x=20
        )

    with pytest.warns(DeprecationWarning):
        a, b = pipe().run()
    assert a.shape() == [(3, 48, 64, 3)] and b.shape() == [(3, 15, 20, 3)]


@pytest.mark.parametrize("operator", ["clips", "legacy_clips"])
def test_clips_hold_only_what_a_sequence_needs(folder, operator):
    """For a video with groups of six pictures, fn._video.clips passes only one or two groups to the decoder."""
    path = folder / "h264.mp4"

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        clip, order = getattr(fn._video, operator)(filenames=[str(path)], sequence_length=2, step=1)
        return clip, order, fn.decoders.video(clip, frames=order)

    p, video = pipe(), decoded(path.read_bytes())
    for start in range(5):
        clip, order, frames = (np.array(o.at(0)) for o in p.run())
        assert order.tolist() == [0, 1]
        assert len(clip) < path.stat().st_size * 0.8
        assert np.abs(frames.astype("i4") - video[start : start + 2]).max() <= 1
