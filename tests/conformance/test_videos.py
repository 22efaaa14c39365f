# SPDX-License-Identifier: Apache-2.0
"""decoders.video compared with the real DALI, whose CPU decoder supports VP8, VP9 and MJPEG.

Clips are gray: DALI always assumes that chroma lies between two pixels, regardless of the stream, so colours differ.
"""

import numpy as np
import pytest

from conformance import oracle, report
from conformance.test_files_and_facts import side_of
from encoded_videos import clip

CLIPS = {
    "vp8": {"codec": "libvpx", "container": "webm", "codec_options": (("g", "6"),)},
    "vp9": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "6"),)},
    "vp9 of odd size": {"codec": "libvpx-vp9", "container": "webm", "size": (31, 45), "pixels": "yuv444p"},
    "vp9 in MP4": {"codec": "libvpx-vp9", "codec_options": (("g", "6"),)},
}
ARGUMENTS = [
    {},
    {"start_frame": 3},
    {"start_frame": 3, "end_frame": 9},
    {"end_frame": 25},
    {"end_frame": 25, "pad_mode": "none"},
    {"sequence_length": 5, "stride": 7},
    {"sequence_length": 45, "pad_mode": "reflect"},
    {"sequence_length": 45, "pad_mode": "symmetric"},
    {"start_frame": 18, "sequence_length": 9, "pad_mode": "edge"},
    {"start_frame": -2, "sequence_length": 4},
    {"start_frame": 20},
    {"start_frame": 3, "end_frame": 3},
    {"frames": [0, 19, 7, 7, 3]},
    {"frames": [22, 5, -1]},
    {"frames": [22], "pad_mode": "none"},
    {"frames": [22, 25], "pad_mode": "reflect_1001"},
    {"frames": [1], "stride": 2},
    {"sequence_length": 2, "end_frame": 3},
    {"sequence_length": 22, "fill_value": [1, 2, 3]},
    {"sequence_length": 22, "fill_value": [1, 2]},
    {"pad_mode": "wrap"},
    {"fill_value": 300},
]


def both(name, graph, batches=1):
    results = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)
        op = fn
        for part in name.split("."):
            op = getattr(op, part)

        @define(batch_size=2, num_threads=2, prefetch_queue_depth=1, **options)
        def pipe(fn=fn, op=op):
            out = graph(fn, op)
            return tuple(out) if isinstance(out, list) else out

        try:
            p = pipe()
            collected = [oracle._collect(p.run()) for _ in range(batches)]
        except Exception as e:
            collected = [oracle.Result(error=oracle._cause(e))]
        results.append(collected)
    for dali, ours in zip(*results):
        tally = report.tally(name)
        tally.cases += 1
        wrong = oracle.compare(dali, ours, oracle.Bound(steps=1), tally)
        assert not wrong, wrong
    assert len(results[0]) == len(results[1])


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("name", CLIPS)
def test_video(name, arguments):
    file = np.frombuffer(clip(gray=True, **CLIPS[name]), "u1")
    both("decoders.video", lambda fn, op: op(fn.external_source(lambda i: [file, file]), device="cpu", **arguments))


SEQUENCES = [
    {"sequence_length": 5},
    {"sequence_length": 5, "step": 2},
    {"sequence_length": 3, "stride": 3},
    {"sequence_length": 2, "stride": 3, "step": 1, "pad_mode": "edge"},
    {"sequence_length": 4, "step": 3, "pad_mode": "edge"},
    {"sequence_length": 6, "pad_mode": "constant", "fill_value": [7, 7, 7]},
    {"sequence_length": 6, "pad_mode": "reflect_101"},
    {"sequence_length": 6, "pad_mode": "symmetric"},
    {"sequence_length": 30, "pad_mode": "edge"},
    {"sequence_length": 30},
    {"sequence_length": 5, "labels": [3, 4]},
    {"sequence_length": 5, "labels": [3]},
    {"sequence_length": 5, "enable_frame_num": True, "enable_timestamps": True},
    {"sequence_length": 6, "enable_frame_num": "sequence", "enable_timestamps": True, "pad_mode": "constant"},
    {"sequence_length": 3, "num_shards": 2, "shard_id": 1},
    {"sequence_length": 3, "pad_last_batch": True},
    {"sequence_length": 7, "uniform_sample": True, "enable_frame_num": "sequence"},
    {"sequence_length": 50, "uniform_sample": True, "enable_timestamps": True},
]


@pytest.mark.parametrize("arguments", SEQUENCES, ids=str)
def test_sequences(tmp_path, arguments):
    files = []
    for i, name in enumerate(("vp9", "vp8")):
        (tmp_path / f"{i}.webm").write_bytes(clip(gray=True, **CLIPS[name]))
        files.append(str(tmp_path / f"{i}.webm"))
    both("experimental.readers.video", lambda fn, op: op(device="cpu", filenames=files, **arguments), 8)


@pytest.mark.parametrize("line", ["3 2 8", "3 0 -1", "3 -4 -1", "3 8 99"])
def test_frames_of_a_list(tmp_path, line):
    (tmp_path / "clip.webm").write_bytes(clip(gray=True, **CLIPS["vp9"]))
    (tmp_path / "list.txt").write_text(f"{tmp_path}/clip.webm {line}\n")
    graph = lambda fn, op: op(
        device="cpu", file_list=str(tmp_path / "list.txt"), file_list_format="frames", sequence_length=2
    )
    both("experimental.readers.video", graph, 4)


@pytest.mark.parametrize("line", ["3 0.2 0.8", "3 0.21 0.79", "3 0.5 1.0"])
@pytest.mark.parametrize("rounding", ["start_down_end_up", "start_up_end_down", "all_up", "all_down"])
def test_times_of_a_list(tmp_path, line, rounding):
    (tmp_path / "clip.webm").write_bytes(clip(gray=True, **CLIPS["vp9"]))
    (tmp_path / "list.txt").write_text(f"{tmp_path}/clip.webm {line}\n")
    graph = lambda fn, op: op(
        device="cpu", file_list=str(tmp_path / "list.txt"), file_list_rounding=rounding, sequence_length=1
    )
    both("experimental.readers.video", graph, 4)


@pytest.mark.parametrize("policy", ["partial", "pad"])
@pytest.mark.parametrize("length", [1, 3, 4, 7, 30])
def test_videos_that_are_fed(length, policy):
    """Two videos, one after the other, in batches of three sequences."""
    results = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)

        @define(batch_size=3, num_threads=2, prefetch_queue_depth=1, **options)
        def pipe(fn=fn):
            return fn.experimental.inputs.video(
                name="video", device="cpu", sequence_length=length, last_sequence_policy=policy
            )

        p = pipe()
        p.build()
        for name in ("vp9", "vp8"):
            p.feed_input("video", np.frombuffer(clip(gray=True, **CLIPS[name]), "u1")[None])
        results.append([oracle._collect(p.run()) for _ in range(2 * -(-20 // (3 * length)))])
    for dali, ours in zip(*results):
        tally = report.tally("experimental.inputs.video")
        tally.cases += 1
        wrong = oracle.compare(dali, ours, oracle.Bound(steps=1), tally)
        assert not wrong, wrong
