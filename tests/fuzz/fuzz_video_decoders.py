# SPDX-License-Identifier: Apache-2.0
"""Decodes damaged videos in a child process: whatever FFmpeg's decoders do, a video is decoded or is an error.

    python tests/fuzz/fuzz_video_decoders.py [--inputs 2000] [--seed 0]

Needs PyAV, which encodes the videos. A crash, or an input that takes longer than a few seconds, ends it with the number
of the input, which with the same seed is the same again.
"""

import argparse
import subprocess
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]

KINDS = {
    "h264": {"codec_options": (("g", "5"), ("bf", "2"))},
    "h264 10 bits": {"pixels": "yuv420p10le", "container": "matroska"},
    "hevc": {"codec": "libx265", "container": "mpegts", "codec_options": (("x265-params", "log-level=none:keyint=5"),)},
    "vp8": {"codec": "libvpx", "container": "webm"},
    "vp9": {"codec": "libvpx-vp9", "container": "webm"},
    "mpeg4": {"codec": "mpeg4", "container": "avi"},
    "mpeg2": {"codec": "mpeg2video", "container": "vob", "rate": 25},
    "mjpeg": {"codec": "mjpeg", "pixels": "yuvj420p", "container": "mov"},
    "prores": {"codec": "prores_ks", "pixels": "yuv422p10le", "container": "mov"},
}
LONGEST_S = 20  # of one input, on a machine that does other things, too


def damaged(data: bytes, rng: np.random.Generator) -> np.ndarray:
    """Bytes of the pictures are changed more often than those of the container."""
    made = np.frombuffer(data, "u1").copy()
    first = 0 if rng.random() < 0.2 else min(200, len(made) // 2)
    for _ in range(int(rng.integers(1, 12))):
        at, n = int(rng.integers(first, len(made))), int(rng.integers(1, 30))
        part = made[at : at + n]
        part[:] = rng.integers(0, 256, len(part)) if rng.random() < 0.5 else 0
    return made[: int(rng.integers(len(made) // 2, len(made)))] if rng.random() < 0.1 else made


def child(inputs: int, seed: int) -> None:
    from encoded_videos import clip
    from penstock import fn, pipeline_def

    videos = [clip(n=12, size=(34, 50), **kind) for kind in KINDS.values()]
    now = np.zeros(1, "u1")

    @pipeline_def(batch_size=1, num_threads=2, prefetch_queue_depth=1)
    def pipe():
        file = fn.external_source(lambda: now, batch=False)
        return fn.decoders.video(file, sequence_length=12, pad_mode="edge")

    n_right = 0
    for i in range(inputs):
        now = damaged(videos[i % len(videos)], np.random.default_rng([seed, i]))
        print(i, flush=True)
        try:
            frames = pipe().run()[0].at(0)
        except Exception as e:  # noqa: BLE001  # every error is right, as long as it is one
            print("error", str(e).splitlines()[-1][:100], flush=True)
            continue
        assert np.array(frames).shape[0] == 12
        n_right += 1
    print(f"{inputs} inputs, of which {n_right} were decoded", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args.inputs, args.seed)
        return 0
    command = [sys.executable, __file__, "--child", "--inputs", str(args.inputs), "--seed", str(args.seed)]
    limit = LONGEST_S + args.inputs  # a second for each
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired as e:
        print(f"an input hangs: {(e.stdout or b'')[-200:]!r}", file=sys.stderr)
        return 1
    lines = done.stdout.splitlines()
    if done.returncode:
        print(f"exit status {done.returncode} at input {lines[-1:]}: {done.stderr[-2000:]}", file=sys.stderr)
        return 1
    print(lines[-1])
    return 0


if __name__ == "__main__":
    sys.exit(main())
