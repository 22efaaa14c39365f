# SPDX-License-Identifier: Apache-2.0
"""decoders.video against the real DALI, whose CPU decoder knows VP8, VP9 and MJPEG.

Clips are gray: DALI takes chroma as lying between two pixels, whatever the stream says, so colours differ.
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


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
@pytest.mark.parametrize("name", CLIPS)
def test_video(name, arguments):
    file = np.frombuffer(clip(gray=True, **CLIPS[name]), "u1")
    results = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)

        @define(batch_size=2, num_threads=2, prefetch_queue_depth=1, **options)
        def pipe(fn=fn):
            return fn.decoders.video(fn.external_source(lambda i: [file, file]), device="cpu", **arguments)

        try:
            results.append(oracle._collect(pipe().run()))
        except Exception as e:
            results.append(oracle.Result(error=oracle._cause(e)))
    tally = report.tally("decoders.video")
    tally.cases += 1
    wrong = oracle.compare(*results, oracle.Bound(steps=1), tally)
    assert not wrong, wrong
