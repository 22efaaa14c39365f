# SPDX-License-Identifier: Apache-2.0
import os

import numpy as np
import pytest

from encoded_videos import clip
from optional_packages import needs
from penstock import PipelineError, fn, pipeline_def
from penstock.operators.read._file_names import FileNames
from penstock.operators.read._videos import Videos

pytestmark = needs("av")


CLIPS = {
    "h264.mp4": {"codec_options": (("g", "6"), ("bf", "2"))},
    "open.mp4": {
        "n": 40,
        "codec_options": (("x264-params", "open-gop=1:keyint=8:bframes=3:b-pyramid=normal:log-level=none"),),
    },
    "gradual.mkv": {
        "container": "matroska",
        "n": 40,
        "codec_options": (("x264-params", "intra-refresh=1:keyint=10:log-level=none"),),
    },
    "fragments.mp4": {"container_options": (("movflags", "frag_keyframe+empty_moov"),), "codec_options": (("g", "6"),)},
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "6"),)},
    "mpeg4.mp4": {"codec": "mpeg4", "codec_options": (("g", "6"), ("bf", "2"))},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    for name, made in CLIPS.items():
        (root / name).write_bytes(clip(**made))
    for name, source in (("b/2.mp4", "h264.mp4"), ("a/1.webm", "vp9.webm"), ("a/notes.txt", "h264.mp4")):
        (root / "classes" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "classes" / name).write_bytes((root / source).read_bytes())
    return root


def whole(path):
    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.decoders.video(fn.io.file.read(np.frombuffer(os.fsencode(path), "u1")))

    return np.array(pipe().run()[0].at(0))


def epoch(n=1, options=None, **arguments):
    """All samples of an epoch, each a list of its outputs."""

    @pipeline_def(batch_size=n, num_threads=2, **(options or {}))
    def pipe():
        outputs = fn.experimental.readers.video(name="reader", **arguments)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    p = pipe()
    p.build()
    size, (shard, shards) = (
        p.reader_meta("reader")["epoch_size"],
        (arguments.get("shard_id", 0), arguments.get("num_shards", 1)),
    )
    size = (shard + 1) * size // shards - shard * size // shards
    samples = []
    while len(samples) < size:
        outputs = p.run()
        samples += [[np.array(o.at(i)) for o in outputs] for i in range(len(outputs[0]))]
    return samples[:size]


@pytest.mark.parametrize("name", CLIPS)
@pytest.mark.parametrize(("length", "stride", "step"), [(4, 1, -1), (3, 3, 2), (1, 1, 5), (2, 7, 1)])
def test_sequences_are_the_frames_of_the_video(folder, name, length, stride, step):
    video = whole(folder / name)
    distance = step if step > 0 else length * stride
    starts = [s for s in range(0, len(video), distance) if s + length * stride <= len(video)]
    got = epoch(
        n=3,
        filenames=[str(folder / name)],
        sequence_length=length,
        stride=stride,
        step=step,
        enable_frame_num="sequence",
    )
    assert len(got) == len(starts) > 0
    for start, (frames, numbers) in zip(starts, got):
        want = list(range(start, start + length * stride, stride))
        assert numbers.tolist() == want
        np.testing.assert_array_equal(frames, video[want])


PADDED = {
    "constant": [-1, -1, -1],
    "edge": [19, 19, 19],
    "repeat": [19, 19, 19],
    "symmetric": [19, 18, 17],
    "reflect_101": [18, 17, 16],
}


@pytest.mark.parametrize("mode", PADDED)
def test_padding(folder, mode):
    path = str(folder / "h264.mp4")
    video, fill = whole(path), [9, 8, 7]
    got = epoch(
        filenames=[path],
        sequence_length=7,
        pad_mode=mode,
        fill_value=fill,
        enable_frame_num="sequence",
        enable_timestamps=True,
    )
    assert len(got) == 3
    frames, numbers, times = got[2]
    # 20 frames: the third sequence has six, and one is padded.
    want = [14, 15, 16, 17, 18, 19, PADDED[mode][0]]
    assert numbers.tolist() == want
    np.testing.assert_allclose(times, [-1 if i < 0 else i / 10 for i in want], atol=1e-9)
    for frame, i in zip(frames, want):
        np.testing.assert_array_equal(frame, video[i] if i >= 0 else np.broadcast_to(np.uint8(fill), frame.shape))


@pytest.mark.parametrize("length", [1, 4, 7, 20, 33])
def test_uniform_samples(folder, length):
    path = str(folder / "h264.mp4")
    ((frames, numbers),) = epoch(
        filenames=[path], sequence_length=length, uniform_sample=True, enable_frame_num="sequence"
    )
    want = [int(np.floor(19 * k / max(length - 1, 1) + 0.5)) for k in range(length)]
    assert numbers.tolist() == want
    np.testing.assert_array_equal(frames, whole(path)[want])


def test_frames_that_lie_far_apart(tmp_path):
    """Data between their groups of pictures is not read: the span covers the first one, and others are read in
    pieces."""
    path = tmp_path / "long.mp4"
    path.write_bytes(clip(n=200, size=(192, 256), codec_options=(("g", "10"), ("crf", "2"))))
    ((frames,),) = epoch(filenames=[str(path)], sequence_length=4, uniform_sample=True)
    np.testing.assert_array_equal(frames, whole(str(path))[[0, 66, 133, 199]])
    videos = Videos(FileNames("", [[os.fsencode(path)]]))
    file, dense, far = np.zeros(1, "i8"), np.int32([[60, 61, 62, 63]]), np.int32([[60, 90, 133, 199]])
    (dense_at,), (dense_size,) = videos.spans(file, dense)
    (far_at,), (far_size,) = videos.spans(file, far)
    assert dense_at == far_at and 0 < far_size <= dense_size < path.stat().st_size / 10


def test_labels_and_folders(folder):
    got = epoch(file_root=str(folder / "classes"), sequence_length=20)
    assert [(f.shape, label.tolist(), label.dtype.name) for f, label in got] == [
        ((20, 48, 64, 3), [0], "int32"),
        ((20, 48, 64, 3), [1], "int32"),
    ]
    np.testing.assert_array_equal(got[0][0], whole(folder / "vp9.webm"))
    got = epoch(filenames=[str(folder / "h264.mp4")] * 2, labels=[5, -3], sequence_length=10, enable_frame_num="scalar")
    assert [(label.tolist(), n.tolist()) for _, label, n in got] == [([5], [0]), ([5], [10]), ([-3], [0]), ([-3], [10])]


LINES = [
    ("3 2 8", "frames", "start_down_end_up", range(2, 8)),
    ("3 0 -1", "frames", "start_down_end_up", range(19)),
    ("3 -4 -1", "frames", "start_down_end_up", range(16, 19)),
    ("3 15 99", "frames", "start_down_end_up", range(15, 20)),
    ("3 16", "frames", "start_down_end_up", range(16, 20)),
    ("3", "frames", "start_down_end_up", range(20)),
    ("3 0.2 0.8", "timestamps", "start_down_end_up", range(2, 8)),
    ("3 0.21 0.79", "timestamps", "start_down_end_up", range(2, 8)),
    ("3 0.21 0.79", "timestamps", "start_up_end_down", range(3, 7)),
    ("3 0.21 0.79", "timestamps", "all_up", range(3, 8)),
    ("3 0.21 0.79", "timestamps", "all_down", range(2, 7)),
    ("3 1.5", "timestamps", "start_down_end_up", range(15, 20)),
    ("3 1.5 99", "timestamps", "start_down_end_up", range(15, 20)),
]


@pytest.mark.parametrize(("line", "kind", "rounding", "want"), LINES)
def test_file_lists(folder, tmp_path, line, kind, rounding, want):
    listed = tmp_path / "list.txt"
    listed.write_text(f"{folder}/h264.mp4 {line}\n\n")
    got = epoch(
        file_list=str(listed),
        file_list_format=kind,
        file_list_rounding=rounding,
        sequence_length=1,
        enable_frame_num="scalar",
    )
    assert [int(n[0]) for *_, n in got] == list(want)
    assert all(label.tolist() == [3] for _, label, _ in got)


def test_shards_shuffles_and_checkpoints(folder):
    arguments = {
        "filenames": [str(folder / name) for name in CLIPS],
        "sequence_length": 4,
        "step": 2,
        "enable_frame_num": "scalar",
        "labels": list(range(len(CLIPS))),
    }
    names = lambda samples: [(int(label[0]), int(n[0])) for _, label, n in samples]
    plain = names(epoch(**arguments))
    assert len(plain) == len(set(plain)) > 60
    shards = [names(epoch(num_shards=3, shard_id=i, **arguments)) for i in range(3)]
    assert sum(shards, []) == plain
    shuffled = names(epoch(shuffle="global", seed=3, **arguments))
    assert shuffled != plain and sorted(shuffled) == plain

    @pipeline_def(batch_size=4, num_threads=2, enable_checkpointing=True)
    def pipe():
        return tuple(fn.experimental.readers.video(shuffle="global", seed=3, **arguments))

    p = pipe()
    for _ in range(5):
        p.run()
    q = pipe(checkpoint=p.checkpoint())
    for a, b in zip(p.run(), q.run()):
        for i in range(4):
            np.testing.assert_array_equal(a.at(i), b.at(i))


def test_operators_behind_it(folder):
    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        frames = fn.experimental.readers.video(filenames=[str(folder / "h264.mp4")], sequence_length=3)
        return fn.crop_mirror_normalize(fn.resize(frames, size=(24, 32)), crop=(16, 16), output_layout="FCHW")

    assert pipe().run()[0].as_array().shape == (2, 3, 3, 16, 16)


def test_source_info_and_gpu_name_the_file(folder):
    path = str(folder / "h264.mp4")

    @pipeline_def(batch_size=1, num_threads=1)
    def pipe():
        return fn.experimental.readers.video(filenames=[path], sequence_length=3)

    assert path in pipe().run()[0][0].source_info()


WRONG = [
    ({"filenames": [], "sequence_length": 2}, "one of 'filenames', 'file_root' and 'file_list' is needed"),
    ({"filenames": ["x"], "file_root": "y", "sequence_length": 2}, "one of 'filenames'"),
    ({"filenames": ["x", "y"], "labels": [1], "sequence_length": 2}, "1 labels for 2 files"),
    ({"filenames": ["x"], "sequence_length": 0}, "sequence_length takes at least 1"),
    ({"filenames": ["x"], "sequence_length": 1, "stride": 0}, "stride takes at least 1"),
    ({"filenames": ["x"], "sequence_length": 1, "pad_mode": "wrap"}, "pad_mode takes one of"),
    ({"filenames": ["/nowhere.mp4"], "sequence_length": 1}, "none of the 1 videos can be read; /nowhere.mp4"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=[t for _, t in WRONG])
def test_errors(arguments, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        epoch(**arguments)


def test_videos_that_are_too_short(folder):
    with pytest.raises((ValueError, RuntimeError), match="no video is long enough for a sequence of 21 frames"):
        epoch(filenames=[str(folder / "h264.mp4")], sequence_length=21)


def test_bad_files_are_bad_samples(folder, tmp_path):
    good, bad, cut = str(folder / "h264.mp4"), str(tmp_path / "bad.mp4"), str(tmp_path / "cut.mkv")
    open(bad, "wb").write(b"no video at all")
    content = (folder / "gradual.mkv").read_bytes()
    open(cut, "wb").write(content[: len(content) // 2])
    files = [good, bad, "/nowhere.mp4", cut]
    with pytest.raises(PipelineError, match=r"bad.mp4|nowhere"):
        epoch(n=8, filenames=files, sequence_length=5)
    got = epoch(n=8, options={"on_error": "skip"}, filenames=files, sequence_length=5, labels=[0, 1, 2, 3])
    video = whole(good)
    for k, (frames, _) in enumerate([s for s in got if s[1][0] == 0][:4]):
        np.testing.assert_array_equal(frames, video[5 * k : 5 * k + 5])
    assert not [s for s in got if s[1][0] in (1, 2)]


def test_a_file_that_shrinks_is_a_bad_sample(folder, tmp_path):
    path = tmp_path / "shrinks.mp4"
    path.write_bytes((folder / "fragments.mp4").read_bytes())

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def pipe():
        return fn.experimental.readers.video(filenames=[str(path)], sequence_length=2)

    p = pipe()
    p.build()
    path.write_bytes(path.read_bytes()[:900])
    with pytest.raises(PipelineError, match=r"shrinks.mp4"):
        for _ in range(10):
            p.run()
