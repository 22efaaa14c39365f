# SPDX-License-Identifier: Apache-2.0
"""Damaged videos have the same bytes in every run, and leave nothing behind for the next videos."""

import hashlib
import json
import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import penstock.video

av = pytest.importorskip("av", reason="PyAV is not installed")

from encoded_videos import clip  # noqa: E402

X265 = "log-level=none:pools=1:frame-threads=1:keyint=20:open-gop=0"
SIZE, N = (144, 176), 40  # a size that H.263 has
VIDEOS = {
    "H.264": {"codec_options": (("g", "20"), ("bf", "2"))},
    "HEVC": {"codec": "libx265", "codec_options": (("x265-params", X265),)},
    "VP8": {"codec": "libvpx", "container": "webm", "codec_options": (("g", "20"),)},
    "VP9": {"codec": "libvpx-vp9", "container": "webm", "codec_options": (("g", "20"),)},
    "MPEG-2": {"codec": "mpeg2video", "container": "mpegts", "codec_options": (("g", "18"), ("bf", "2"))},
    "MPEG-4": {"codec": "mpeg4", "codec_options": (("g", "18"), ("bf", "2"))},
    "H.263": {"codec": "h263", "container": "mov"},
    "Motion JPEG": {"codec": "mjpeg", "pixels": "yuvj420p"},
    "ProRes": {"codec": "prores_ks", "pixels": "yuv422p10le", "container": "mov"},
}
N_DAMAGED = 16


def damaged(data: bytes, seed: int) -> bytes:
    rng, found = np.random.default_rng(seed), np.frombuffer(data, "u1").copy()
    for at in rng.integers(len(data) // 10, len(data) * 9 // 10, rng.integers(1, 6)):
        kind, n = rng.integers(3), int(rng.integers(1, 150))
        if kind == 0:
            found[at] ^= 1 << rng.integers(8)
        else:
            part = found[at : at + n]
            part[:] = 0 if kind == 1 else rng.integers(0, 256, len(part))
    return found.tobytes()


def digest(frames: np.ndarray) -> str:
    return hashlib.sha256(frames.tobytes()).hexdigest()


def frames_of(path: Path) -> list[str]:
    """Digests of the frames by index, one by one and together, and by iteration; or the error."""
    try:
        video = penstock.video.open(path)
        return [digest(video[len(video) // 2]), digest(video[:]), digest(np.stack(list(video)))]
    except ValueError as e:
        return [str(e)]


def main(seed: str, *paths: str) -> None:
    """Prints the digests of videos that are decoded in an order of their own."""
    order = np.random.default_rng(int(seed)).permutation(len(paths))
    print(json.dumps({paths[i]: frames_of(Path(paths[i])) for i in order}))


@pytest.fixture(scope="module")
def damaged_videos(tmp_path_factory):
    """The files by the name of the video, the first of them as it was; and what two other processes read, in other
    orders and in memory with other contents."""
    paths = {name: [tmp_path_factory.mktemp("damaged") / str(i) for i in range(N_DAMAGED)] for name in VIDEOS}
    for name in VIDEOS:
        data = clip(n=N, size=SIZE, **VIDEOS[name])
        for seed, path in enumerate(paths[name]):
            path.write_bytes(damaged(data, seed) if seed else data)
    code = f"import sys; sys.path[:0] = {sys.path!r}; import test_damage; test_damage.main(*sys.argv[1:])"
    read = [
        subprocess.run(
            [sys.executable, "-c", code, seed, *(str(path) for name in VIDEOS for path in paths[name])],
            cwd=Path(__file__).parent,
            env={**os.environ, "MALLOC_PERTURB_": seed},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    return paths, [json.loads(text) for text in read]


@pytest.mark.parametrize("name", VIDEOS)
def test_the_same_bytes_in_each_run(damaged_videos, name):
    of_all, read = damaged_videos
    paths, want, n_decoded = of_all[name], {}, 0
    for path in paths:
        want[str(path)] = found = frames_of(path)
        assert found[1:] in ([], found[1:2] * 2), f"iterating over {path.name} and [:] differ"
        n_decoded += len(found) == 3 and found[1] != want[str(paths[0])][1]
    assert n_decoded >= 3
    for found in read:
        assert {path: found[path] for path in want} == want


def test_a_damaged_video_does_not_change_the_next(tmp_path):
    """A damaged slice may look like a parameter set, which replaces that of the stream."""
    data = clip(n=N, size=SIZE, **VIDEOS["H.264"])
    healthy, path = tmp_path / "healthy", tmp_path / "damaged"
    healthy.write_bytes(data)
    want = penstock.video.open(healthy)[:]
    units, at = [], data.index(b"mdat") + 4
    while at + 4 < len(data) and (n := struct.unpack_from(">I", data, at)[0]) and at + 4 + n <= len(data):
        units.append(at + 4)
        at += 4 + n
    assert len(units) >= N
    for seed in range(60):
        rng, changed = np.random.default_rng(seed), bytearray(data)
        unit = int(rng.choice(units[1:]))
        changed[unit : unit + 9] = b"\x68" + rng.bytes(8)
        changed[unit + 1] |= 0xC0  # picture parameter set 0 of sequence parameter set 0
        path.write_bytes(changed)
        frames_of(path)
        np.testing.assert_array_equal(penstock.video.open(healthy)[:], want)
