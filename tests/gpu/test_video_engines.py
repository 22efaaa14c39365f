# SPDX-License-Identifier: Apache-2.0
"""device="mixed": videos decoded by the GPU's engines are bit for bit the same as on the CPU, which decodes the
others."""

import ctypes
import gc
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.gpu import nvdec
from penstock.operators.decode.gpu.sharing import Sharing

pytest.importorskip("av", reason="PyAV is not installed")
import encoded_videos
from encoded_videos import clip

EMULATED = os.environ.get("PENSTOCK_TEST_GPU") != "1"
SIZE = (152, 194)  # engines require at least 144 pixels
BY_ENGINES, BY_CPU = "video engines", "CPU (video)"
MANY_B = (("bf", "3"), ("g", "8"))
FULL = (("x264-params", "fullrange=on:colormatrix=bt709:chromaloc=1"),)
OPEN = (("x265-params", "log-level=0:keyint=8:open-gop=1:bframes=3"),)
HIDDEN = (("auto-alt-ref", "1"), ("lag-in-frames", "10"), ("g", "12"))  # hidden frames
WIDE = (("x265-params", "log-level=0:colormatrix=bt2020nc:chromaloc=2"),)


def emulated():
    if not EMULATED:
        pytest.skip("of the emulated device")
    return ctypes.CDLL(os.environ["PENSTOCK_NVCUVID"])


def decoded(files, device, on_error="raise", **arguments):
    """The frames of each file, and the number decoded by each engine."""

    @pipeline_def(batch_size=len(files), num_threads=2, device_id=0, on_error=on_error)
    def pipe():
        encoded = fn.external_source(lambda: [np.frombuffer(f, "u1") for f in files], batch=True)
        return fn.decoders.video(encoded, device=device, **arguments)

    p = pipe()
    (out,) = p.run()
    frames = [np.array(x) for x in (out.as_cpu() if device == "mixed" else out)]
    return frames, p.stats()["gpu"]["decoders"] if device == "mixed" else None


def compare(files, **arguments):
    expected, _ = decoded(files, "cpu", **arguments)
    found, by = decoded(files, "mixed", **arguments)
    for a, b in zip(expected, found):
        np.testing.assert_array_equal(a, b)
    return by


@pytest.mark.parametrize(
    "made",
    [
        {"codec_options": MANY_B},
        {"codec_options": MANY_B, "container": "matroska"},
        {"codec_options": FULL, "pixels": "yuvj420p"},
        {"codec_options": (("flags", "+ildct+ilme"), ("x264-params", "tff=1"))},
        {"times": tuple(100 * i + 37 * (i % 3) for i in range(20))},
        {"codec": "libx265", "codec_options": OPEN},
        {"codec": "libx265", "codec_options": WIDE, "pixels": "yuv420p10le"},
        {"codec": "libx265", "pixels": "yuv420p12le"},
        {"codec": "libx265", "pixels": "yuv444p"},
        {"codec": "libvpx", "container": "webm", "codec_options": HIDDEN},
        {"codec": "libvpx-vp9", "container": "webm", "codec_options": HIDDEN},
        {"codec": "libvpx-vp9", "container": "mp4", "codec_options": (("g", "7"), ("color_range", "pc"))},
        {"codec": "libvpx-vp9", "container": "mp4", "codec_options": (("g", "7"), ("colorspace", "bt709"))},
    ],
    ids=["b", "matroska", "full", "interlaced", "vfr", "open", "10 bits", "12 bits", "444"]
    + ["VP8", "VP9", "VP9 full", "VP9 of BT.709"],
)
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"start_frame": 9, "sequence_length": 4, "stride": 2},
        {"frames": [13, 2, 2, -1, 19], "image_type": types.YCbCr, "fill_value": [1, 2, 3]},
    ],
    ids=["all", "range", "listed"],
)
def test_pixels_are_those_of_the_cpu(made, arguments):
    assert compare([clip(size=SIZE, **made)], **arguments)[BY_ENGINES] >= 1


def test_vp9_of_10_bits():
    # PyAV's encoder supports only 8 bits: this is FFmpeg's test source, encoded by Debian's libvpx.
    file = Path(__file__).with_name("vp9_10_bits.webm").read_bytes()
    assert compare([file])[BY_ENGINES] >= 1
    expected = encoded_videos.decoded(file).astype("i4")
    assert np.abs(decoded([file], "mixed")[0][0] - expected).max() <= 1


@pytest.mark.parametrize(
    "made",
    [
        {"pixels": "yuv420p10le"},
        {"pixels": "yuv444p"},
        {"codec": "libvpx-vp9", "container": "webm", "pixels": "yuv444p"},
        {"codec": "mpeg4"},
        {"size": (8, 8)},
    ],
    ids=["10 bits", "444", "VP9 444", "MPEG-4", "small"],
)
def test_what_no_engine_decodes_the_cpu_does(made):
    by = compare([clip(**{"size": SIZE, **made})])
    assert by[BY_ENGINES] == 0 and by[BY_CPU] >= 1


def test_a_damaged_video_is_the_only_bad_sample():
    good = clip(size=SIZE)
    bad = good[: len(good) // 2]
    with pytest.raises(RuntimeError) as on_cpu:
        decoded([good, bad], "cpu")
    with pytest.raises(RuntimeError) as on_gpu:
        decoded([good, bad], "mixed")
    reason = [line for line in str(on_cpu.value).splitlines() if "beyond the end" in line or "cut" in line]
    assert reason and reason[0] in str(on_gpu.value)
    (frames,), _ = decoded([good], "cpu")
    found, _ = decoded([good, bad], "mixed", on_error="skip")
    np.testing.assert_array_equal(found[0], frames)


def test_what_the_cpu_decodes_beside_the_engines_is_the_same(monkeypatch):
    monkeypatch.setattr(Sharing, "begin", lambda self, n: n // 2)
    monkeypatch.setattr(Sharing, "end", lambda self, *times: None)
    good, other = clip(size=SIZE), clip(size=SIZE, n=7)
    bad = good[: len(good) // 2]
    expected, _ = decoded([good, other, good, other], "cpu")
    found, by = decoded([good, other, good, other], "mixed")
    assert by[BY_ENGINES] >= 2 and by[BY_CPU] >= 2
    for a, b in zip(expected, found, strict=True):
        np.testing.assert_array_equal(a, b)
    found, _ = decoded([good, other, bad, good], "mixed", on_error="skip")
    for a, b in zip([expected[0], expected[1], expected[0]], found, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("call", ["create", "decode", "map", "status"])
@pytest.mark.parametrize("after", [0, 3])
def test_what_fails_in_the_driver_the_cpu_decodes(call, after):
    library = emulated()
    library.emulated_video_fail(call.encode(), after)
    try:
        compare([clip(size=SIZE), clip(size=SIZE, codec_options=MANY_B)])
    finally:
        library.emulated_video_fail(b"", 0)


def test_decoders_are_kept_and_changed_to_other_sizes(monkeypatch):
    monkeypatch.setattr(nvdec, "_MOST_LANES", 2)
    large, small = clip(size=SIZE), clip(size=(146, 180), n=6)
    engines = []

    @pipeline_def(batch_size=6, num_threads=2, device_id=0)
    def pipe():
        files = [np.frombuffer(f, "u1") for f in (large, small) * 3]
        return fn.decoders.video(fn.external_source(lambda: files, batch=True), device="mixed", sequence_length=5)

    made = nvdec.VideoEngines.__init__

    def slowly_made(self, session):
        time.sleep(0.05)  # so that other batches ask for it meanwhile
        made(self, session)
        engines.append(self)

    monkeypatch.setattr(nvdec.VideoEngines, "__init__", slowly_made)
    (a, b), _ = decoded([large, small], "cpu", sequence_length=5)
    p = pipe()
    for _ in range(4):
        (out,) = p.run()
        for i, x in enumerate(out.as_cpu()):
            np.testing.assert_array_equal(np.array(x), b if i % 2 else a)
    (made_once,) = engines
    created, changed = made_once.counts()
    assert created <= 4 and changed >= 1  # a decoder created for the small video is recreated for the large one
    del made_once
    engines.clear()


def test_nothing_stays_behind():
    library = emulated()
    compare([clip(size=SIZE)] * 5)
    gc.collect()
    assert library.emulated_video_live() == 0


def test_another_ffmpeg_of_the_process_is_left_alone(tmp_path):
    """For example DALI's, which has neither H.264 nor HEVC: the emulated engines used whichever FFmpeg the process had
    loaded."""
    emulated()
    source = tmp_path / "none.c"
    source.write_text("void *avcodec_find_decoder_by_name(const char *name) { return 0; }")
    others = [str(tmp_path / f"lib{name}-other.so") for name in ("avcodec", "avutil")]
    for other in others:
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", other, str(source)], check=True)
    program = f"""
import ctypes, av
for other in {others}: ctypes.CDLL(other)
import test_video_engines as t
assert t.compare([t.clip(size=t.SIZE, n=4)])[t.BY_ENGINES] >= 1
"""
    paths = [Path(__file__).parents[1], Path(__file__).parent, *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)


def test_readers_decode_by_engines():
    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipe():
        return tuple(
            x
            for device in ("cpu", "gpu")
            for x in (
                fn.readers.video(device=device, filenames=["examples/clips/clock.mp4"], sequence_length=4),
                fn.readers.video_resize(
                    device=device, filenames=["examples/clips/clock.mp4"], sequence_length=4, resize_shorter=20
                ),
            )
        )

    p = pipe()
    frames, resized, frames_gpu, resized_gpu = p.run()
    np.testing.assert_array_equal(frames.as_array(), frames_gpu.as_cpu().as_array())
    np.testing.assert_allclose(resized.as_array().astype("f8"), resized_gpu.as_cpu().as_array(), atol=1)
    assert "the GPU's video engines" in p.explain()
    if EMULATED:  # it is too small for some
        assert p.stats()["gpu"]["decoders"][BY_ENGINES] >= 4


@pytest.mark.parametrize("path", ["/nowhere/libnvcuvid.so", None], ids=["no library", "no engine"])
def test_without_engines_the_cpu_decodes(monkeypatch, path):
    emulated()
    monkeypatch.setenv("PENSTOCK_EMULATED_NVDEC", "0")
    if path:
        monkeypatch.setenv("PENSTOCK_NVCUVID", path)
        nvdec.library.cache_clear()
    try:
        assert compare([clip(size=SIZE)])[BY_ENGINES] == 0
        if path:
            with pytest.raises(nvdec.EngineMissing, match="video engines was not found.*NVIDIA_DRIVER_CAPABILITIES"):
                nvdec.library()
    finally:
        nvdec.library.cache_clear()
