# SPDX-License-Identifier: Apache-2.0
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from encoded_videos import clip, decoded, pattern
from harness import op_test
from optional_packages import needs
from penstock import fn, pipeline_def, types

pytestmark = needs("av")


H264 = {"codec_options": (("g", "6"), ("bf", "2"))}
OPEN_GROUPS = (("x264-params", "open-gop=1:keyint=8:bframes=3:b-pyramid=normal:log-level=none"),)
CLIPS = {
    "h264": H264,
    "h264 of odd size": {"size": (33, 51), "pixels": "yuv444p"},
    "h264 with open groups of pictures": {"n": 40, "codec_options": OPEN_GROUPS},
    "h264 that is refreshed gradually": {
        "container": "matroska",
        "n": 40,
        "codec_options": (("x264-params", "intra-refresh=1:keyint=10:log-level=none"),),
    },
    "h264, interlaced": {"codec_options": (("x264-params", "tff=1:keyint=6:log-level=none"),)},
    "h264 of 10 bits": {"pixels": "yuv420p10le", **H264},
    "h264, 4:2:2 of 10 bits": {"pixels": "yuv422p10le", **H264},
    "h264, 4:4:4": {"pixels": "yuv444p", "container": "matroska", **H264},
    "h264 in fragments": {"container_options": (("movflags", "frag_keyframe+empty_moov"),), **H264},
    "h264 in fragments of their own base": {
        "container_options": (("movflags", "frag_keyframe+empty_moov+default_base_moof+negative_cts_offsets"),),
        **H264,
    },
    "h264 at varying times": {"times": tuple(int(100 * i + 40 * (i % 3)) for i in range(20)), **H264},
    "hevc": {"codec": "libx265", "codec_options": (("x265-params", "keyint=6:bframes=2:log-level=none"),)},
    "hevc with open groups of pictures": {
        "codec": "libx265",
        "n": 40,
        "codec_options": (("x265-params", "open-gop=1:keyint=8:bframes=4:log-level=none"),),
    },
    "hevc of 10 bits": {
        "codec": "libx265",
        "pixels": "yuv420p10le",
        "codec_options": (("x265-params", "keyint=6:log-level=none"),),
    },
    "vp8": {"codec": "libvpx", "container": "webm", "codec_options": (("g", "6"),)},
    "vp9": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "6"),)},
    "vp9 of odd size": {"codec": "libvpx-vp9", "container": "webm", "size": (31, 45), "pixels": "yuv444p"},
    "mpeg4": {"codec": "mpeg4", "codec_options": (("g", "6"), ("bf", "2"))},
    "mpeg4 in Matroska": {"codec": "mpeg4", "container": "matroska", "codec_options": (("g", "6"),)},
    "mpeg2": {"codec": "mpeg2video", "rate": 25, "codec_options": (("g", "6"), ("bf", "2"))},
    "mjpeg": {"codec": "mjpeg", "container": "mov", "pixels": "yuvj420p"},
    "prores": {"codec": "prores_ks", "container": "mov", "pixels": "yuv422p10le", "n": 5},
}


def made(name):
    return np.frombuffer(clip(**CLIPS[name]), "u1")


def run(*files, **arguments):
    @pipeline_def(batch_size=len(files), num_threads=2)
    def pipe():
        return fn.decoders.video(fn.external_source(lambda i: list(files)), **arguments)

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(len(files))]


def reference(
    x, frames=None, start_frame=0, end_frame=None, sequence_length=None, stride=1, pad_mode="constant", fill=0
):
    video = decoded(x)
    n = len(video)
    if frames is None:
        end = n if end_frame is None else end_frame
        count = -(-(end - start_frame) // stride) if sequence_length is None else sequence_length
        frames = [start_frame + i * stride for i in range(count)]
        if pad_mode == "none":
            frames = [i for i in frames if i < n]
    # The corresponding modes of numpy.pad give the order of frames far beyond both ends.
    far = 4 * n
    modes = {"edge": "edge", "repeat": "edge", "reflect_1001": "symmetric", "symmetric": "symmetric"}
    if pad_mode in ("constant", "none"):
        order = np.pad(np.arange(n), far, constant_values=-1)
    else:
        order = np.pad(np.arange(n), far, mode=modes.get(pad_mode, "reflect"))
    padding = np.broadcast_to(np.uint8(fill), video.shape[1:])
    return np.stack([padding if order[i + far] < 0 else video[order[i + far]] for i in frames] or [video[0]])[
        : len(frames)
    ]


def some_clips(rng, case):
    return [made("h264"), made("vp9 of odd size"), made("mpeg4"), made("hevc")]


def gray_clips(rng, case):
    return [np.frombuffer(clip(gray=True, **CLIPS[name]), "u1") for name in ("vp9", "vp8", "vp9 of odd size")]


ARGUMENTS = [
    {},
    {"start_frame": 3},
    {"start_frame": 3, "end_frame": 9},
    {"end_frame": 25},
    {"end_frame": 25, "pad_mode": "none"},
    {"sequence_length": 5, "stride": 7},
    {"start_frame": 18, "sequence_length": 9, "pad_mode": "edge"},
    {"start_frame": 18, "sequence_length": 9, "pad_mode": "repeat"},
    {"sequence_length": 30, "stride": 2, "pad_mode": "reflect_101"},
    {"sequence_length": 30, "stride": 2, "pad_mode": "symmetric"},
    {"sequence_length": 45, "pad_mode": "reflect"},
    {"start_frame": 15, "sequence_length": 9, "stride": 2, "pad_mode": "none"},
    {"start_frame": -2, "sequence_length": 4},
    {"sequence_length": 0},
    {"frames": [0, 19, 7, 7, 3]},
    {"frames": [22, 5, -1]},
    {"frames": [22, 5], "pad_mode": "edge"},
    {"frames": [22, 25], "pad_mode": "reflect_1001"},
]
TestVideo = op_test(
    "decoders.video",
    reference,
    layouts=("",),
    args=ARGUMENTS,
    make_input=some_clips,
    steps=1,
    dali_differs={"accepts:": "DALI's CPU decoder has no H.264, HEVC and MPEG-4"},
)
# Codecs of DALI's CPU decoder; gray, as its chroma positions differ.
TestGray = op_test("decoders.video", reference, layouts=("",), args=ARGUMENTS, make_input=gray_clips, steps=1)


@pytest.mark.parametrize("name", CLIPS)
def test_all_frames_and_some_frames(name):
    file = made(name)
    want = decoded(file)
    (whole,) = run(file)
    assert whole.shape == want.shape
    assert np.abs(whole.astype(int) - want).max() <= 1
    rng = np.random.default_rng(0)
    for _ in range(15):
        frames = rng.integers(0, len(want), rng.integers(1, 6)).tolist()
        np.testing.assert_array_equal(run(file, frames=frames)[0], whole[frames], err_msg=str(frames))


def test_the_reference_sees_that_frames_differ():
    frames = decoded(made("h264"))
    assert all((a != b).any() for a, b in zip(frames, frames[1:]))
    assert np.abs(frames.astype(int) - pattern(20, 48, 64)).mean() < 12  # colours are those that were encoded


def boxes(file, begin=0, end=None):
    """(offset, type, size) of MP4's boxes."""
    at, end = begin, len(file) if end is None else end
    while at + 8 <= end:
        size, kind = struct.unpack(">I4s", file[at : at + 8].tobytes())
        yield at, kind, size
        at += size


def find_box(file, *path):
    begin, end = 0, len(file)
    for kind in path:
        at, size = next((at, size) for at, k, size in boxes(file, begin, end) if k == kind)
        begin, end = at + 8, at + size
    return begin, end


def test_edit_lists_cut_frames_off():
    file = made("h264").copy()
    begin, _ = find_box(file, b"moov", b"trak", b"edts", b"elst")
    duration, media_time = struct.unpack(">Ii", file[begin + 8 : begin + 16].tobytes())
    (timescale,) = struct.unpack(">I", file[(b := find_box(file, b"moov", b"mvhd")[0]) + 12 : b + 16].tobytes())
    (media,) = struct.unpack(
        ">I", file[(b := find_box(file, b"moov", b"trak", b"mdia", b"mdhd")[0]) + 12 : b + 16].tobytes()
    )
    whole = decoded(made("h264"))
    # 7 frames of a tenth of a second, from the sixth on
    file[begin + 8 : begin + 16] = np.frombuffer(
        struct.pack(">Ii", 7 * timescale // 10, media_time + 5 * media // 10), "u1"
    )
    (got,) = run(file)
    assert len(got) == 7
    assert np.abs(got.astype(int) - whole[5:12]).max() <= 1
    np.testing.assert_array_equal(decoded(file), whole[5:12])  # as FFmpeg's demuxer


def test_arguments_that_differ_from_sample_to_sample():
    files = [made("h264"), made("mpeg4"), made("vp9")]
    starts = [np.int32(i) for i in (0, 4, 9)]
    numbers = [np.int32(x) for x in ([3, 1], [5], [2, 2, 19])]

    @pipeline_def(batch_size=3, num_threads=2)
    def pipe():
        encoded = fn.external_source(lambda i: files)
        start = fn.external_source(lambda i: starts)
        listed = fn.external_source(lambda i: numbers)
        return fn.decoders.video(encoded, start_frame=start, sequence_length=3), fn.decoders.video(
            encoded, frames=listed
        )

    ranges, lists = pipe().run()
    for i, file in enumerate(files):
        whole = run(file)[0]
        np.testing.assert_array_equal(ranges.at(i), whole[starts[i] : starts[i] + 3])
        np.testing.assert_array_equal(lists.at(i), whole[numbers[i]])
    assert ranges.layout() == "FHWC"


def test_fill_value():
    (a, b) = (run(made("h264"), frames=[-1, 0], fill_value=v)[0] for v in ([7], [1, 2, 3]))
    assert (a[0] == 7).all() and (b[0] == [1, 2, 3]).all()
    np.testing.assert_array_equal(a[1], b[1])


def test_operators_behind_it_get_frames():
    @pipeline_def(batch_size=1, num_threads=2)
    def pipe():
        frames = fn.decoders.video(fn.external_source(lambda i: [made("h264")]), sequence_length=4)
        return frames, fn.crop(frames, crop=(20, 30)), fn.resize(frames, size=(24, 32))

    whole, cropped, resized = (np.array(o.at(0)) for o in pipe().run())
    np.testing.assert_array_equal(cropped, whole[:, 14:34, 17:47])
    assert resized.shape == (4, 24, 32, 3)


CROPS = {
    "inside": {"crop": (20, 31), "crop_pos_x": 0.3, "crop_pos_y": 0.8},
    "one pixel": {"crop": (1, 1), "crop_pos_x": 0.52, "crop_pos_y": 0.52},
    "one row": {"crop": (1, 64), "crop_pos_y": 0.9},
    "at the right end": {"crop": (48, 3), "crop_pos_x": 1.0},
    "beyond the frames": {"crop": (60, 70), "out_of_bounds_policy": "pad", "fill_values": 3},
}


@pytest.mark.parametrize("name", CROPS)
@pytest.mark.parametrize("pixels", ["yuv420p", "yuv422p10le", "yuv444p"])
def test_a_crop_of_frames_that_nobody_else_wants(name, pixels):
    """Then only the window is converted; it is equal to that of whole frames."""
    data = np.frombuffer(clip(pixels=pixels, container="matroska", size=(48, 64), n=6), "u1")

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        files = fn.external_source(lambda i: [data] * 2)
        one, whole = (fn.decoders.video(files, frames=[4, -1, 0, 4], fill_value=[9, 8, 7]) for _ in range(2))
        return fn.crop(one, **CROPS[name]), fn.crop(whole, **CROPS[name]), whole

    cropped, expected, whole = (np.array(o.at(1)) for o in pipe().run())
    assert whole.shape == (4, 48, 64, 3) and (whole[1] == [9, 8, 7]).all()
    np.testing.assert_array_equal(cropped, expected)


WINDOWED = [(100, "libx264", pixels, {"chroma_sample_location": siting, "qp": "0"}) for pixels in ("yuv420p", "yuv422p")
            for siting in ("left", "topleft", "center")]  # fmt: skip


@pytest.mark.parametrize(("width", "codec", "pixels", "options"), [*WINDOWED, (101, "mpeg4", "yuv420p", {"q": "1"})])
def test_narrow_and_wide_windows_have_the_same_pixels(width, codec, pixels, options):
    """Wide rows are converted in one pass, narrow ones by several. Windows begin and end at even and at odd columns and
    rows, and at the edges of the picture."""
    video = clip(codec, pixels, (30, width), 2, "matroska", codec_options=tuple(options.items()))
    data = np.frombuffer(video, "u1")

    def windows(size, places):
        @pipeline_def(batch_size=len(places), num_threads=2)
        def pipe():
            files, at = fn.external_source(lambda i: ([data] * len(places), np.float32(places)), num_outputs=2)
            frames = fn.decoders.video(files, frames=[1])
            return fn.slice(
                frames, at, np.float32(size), axis_names="HW", normalized_anchor=False, normalized_shape=False
            )

        (out,) = pipe().run()
        return [np.array(out.at(i)) for i in range(len(places))]

    narrow = [windows((30, 1), [(0, x) for x in range(width)]), windows((30, 7), [(0, x) for x in range(0, width - 6)])]
    whole = np.concatenate(narrow[0], axis=2)
    assert len(np.unique(whole)) > 100
    for x, window in enumerate(narrow[1]):
        np.testing.assert_array_equal(window, whole[:, :, x : x + 7])
    for height, wide in ((30, 32), (5, 33), (30, 64), (7, 65), (1, 99), (30, 100)):
        places = [(y, x) for y in range(0, 31 - height, 3) for x in range(min(width - wide + 1, 5))]
        places += [(30 - height, width - wide)]
        for (y, x), window in zip(places, windows((height, wide), places), strict=True):
            np.testing.assert_array_equal(
                window, whole[:, y : y + height, x : x + wide], err_msg=f"{y, x, height, wide}"
            )


WRONG = [
    ({"pad_mode": "wrap"}, "Invalid pad_mode: wrap"),
    ({"fill_value": [1, 2]}, "fill_value takes 1 value, or 3"),
    ({"fill_value": 300}, r"fill_value must be in range \[0, 255\]"),
    ({"frames": [1], "stride": 2}, "Cannot specify both `frames` and any of `stride`"),
    ({"sequence_length": 2, "end_frame": 3}, "Cannot specify both `sequence_length` and `end_frame`"),
    ({"start_frame": 20}, r"Start frame 20 is out of bounds, expected range \[0, 20\)"),
    ({"start_frame": 3, "end_frame": 3}, r"end_frame \(3\) must be greater than start_frame \(3\)"),
    ({"stride": 0}, "stride takes at least 1"),
    ({"sequence_length": -1}, "sequence_length takes at least 0"),
    ({"frames": [3, 20], "pad_mode": "none"}, "Unexpected out-of-bounds frame index 20"),
]


@pytest.mark.parametrize(("arguments", "text"), WRONG, ids=[str(a) for a, _ in WRONG])
def test_errors(arguments, text):
    with pytest.raises((ValueError, RuntimeError), match=text):
        run(made("h264"), **arguments)


DAMAGED = {
    "empty": (lambda f: f[:0], "empty file"),
    "no video": (lambda f: np.frombuffer(b"GIF89a and more", "u1"), "15 bytes that begin with 47 49 46 38 39 61"),
    "cut off before the table": (lambda f: f[: find_box(f, b"moov")[0] - 8], "no table of contents"),
    "cut off in the pictures": (lambda f: np.concatenate([f[find_box(f, b"moov")[0] - 8 :], f[:40]]), "beyond the end"),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_errors_of_their_samples(name):
    damage, text = DAMAGED[name]
    bad, good = damage(made("h264")), made("h264")
    with pytest.raises(RuntimeError, match=text):
        run(good, bad, sequence_length=2)

    @pipeline_def(batch_size=2, num_threads=2, on_error="skip")
    def pipe():
        return fn.decoders.video(fn.external_source(lambda i: [bad, good]), sequence_length=2)

    if len(bad):
        p = pipe()
        (out,) = p.run()
        assert len(out) == 1
        assert text in str(p.errors()[0])


@pytest.mark.parametrize("time", (2**63 - 1, -(2**63)))
def test_a_fragment_at_the_end_of_time_is_an_error(time):
    bad = made("h264 in fragments").copy()
    at = bytes(bad).index(b"tfdt")
    assert bad[at + 4] == 1  # 64 bits
    bad[at + 8 : at + 16] = np.frombuffer(struct.pack(">q", time), "u1")
    with pytest.raises(RuntimeError, match="shown at an impossible time"):
        run(bad)


def test_a_damaged_picture_names_its_frame_and_spares_others():
    file = made("h264").copy()
    begin, end = find_box(file, b"mdat")
    middle = (begin + end) // 2
    file[middle : middle + 600] = 0xFF
    with pytest.raises(RuntimeError, match=r"frame \d+"):
        run(file)
    np.testing.assert_array_equal(run(file, frames=[0])[0], run(made("h264"), frames=[0])[0])


def test_without_ffmpeg_the_error_says_what_to_install(tmp_path):
    program = """
from penstock import fn, pipeline_def
@pipeline_def(batch_size=1)
def pipe():
    return fn.decoders.video(fn.external_source(lambda i: []))
pipe()
"""
    result = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PENSTOCK_FFMPEG": str(tmp_path)},
        text=True,
        capture_output=True,
    )
    assert result.returncode and "PENSTOCK_FFMPEG" in result.stderr and "libavcodec" in result.stderr


@pytest.mark.skipif(not os.environ.get("PENSTOCK_DATA"), reason="PENSTOCK_DATA is not set")
def test_real_clips():
    folder = Path(os.environ["PENSTOCK_DATA"], "video")
    files = sorted(p for p in folder.glob("*.m??") if "corrupted" not in p.name and p.suffix != ".mp3")
    assert len(files) > 8
    for path in files:
        file = np.fromfile(path, "u1")
        want, (whole,) = decoded(file), run(file)
        assert whole.shape == want.shape, path.name
        # Frame by frame: a video of 64-bit integers takes longer to make and to read than to decode.
        assert max((np.maximum(a, b) - np.minimum(a, b)).max() for a, b in zip(whole, want)) <= 1, path.name
        np.testing.assert_array_equal(run(file, frames=[len(want) - 1, 1])[0], whole[[len(want) - 1, 1]])


def test_types_constant_takes_a_file():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.decoders.video(types.Constant(made("vp8")), frames=[2])

    (out,) = pipe().run()
    np.testing.assert_array_equal(out.at(0), out.at(1))
