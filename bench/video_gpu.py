# SPDX-License-Identifier: Apache-2.0
"""Clips of 1080p videos into batches on the GPU: penstock against DALI, and against the video engines alone.

    python bench/video_gpu.py [--folder FOLDER] [--engines PROGRAM] [--rounds 3] [--seconds 3] [--limit 90]

Videos are photographs that move, 30 frames per second, with a key frame every 16 frames: a clip of 16 frames begins
with one, so that nobody decodes frames in vain. They are made here with PyAV where --folder does not have them.
"The engines alone" is `bench/native/nvdec_rate.cpp`, which decodes and maps every picture and does nothing with it;
--engines names the compiled program. Contenders run in processes of their own, in turns, and medians count. Rounds end
after --limit seconds, and what is known then is written; runs that the folder has results of are not made again.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import measure
import numpy as np

from video import UNITS, footprint

ROOT = Path(__file__).parents[1]
CODECS = {
    "H.264": ("libx264", "h264", {"preset": "medium", "crf": "25", "g": "16", "keyint_min": "16", "bf": "2"}),
    "HEVC": (
        "libx265",
        "hevc",
        {"preset": "fast", "crf": "28", "x265-params": "log-level=0:keyint=16:min-keyint=16:open-gop=0"},
    ),
    "VP9": ("libvpx-vp9", "vp9", {"crf": "34", "b": "0", "g": "16", "cpu-used": "5", "deadline": "good"}),
}
HEIGHT, WIDTH, FRAMES, CLIP = 1080, 1920, 96, 16
FILES, BATCH, WARM_UP_S = 8, 8, 6
THREADS = len(os.sched_getaffinity(0))


# Videos ---------------------------------------------------------------------------------------------------------------


def moving(folder: str) -> Iterator[np.ndarray]:
    """Pictures (HEIGHT, WIDTH, 3): a window that moves over photographs, 24 frames each."""
    from PIL import Image

    paths = sorted(Path(folder, "photos1280").glob("*.jpg"))
    if not paths:
        sys.exit("no photographs: give --data FOLDER that holds photos1280/, or set PENSTOCK_DATA")
    for i in range(FRAMES):
        k = i // 24
        picture = Image.open(paths[k % len(paths)]).convert("RGB")
        scale = 1.15 + 0.004 * (i % 24)
        picture = picture.resize((int(WIDTH * scale), int(HEIGHT * scale)), Image.Resampling.BICUBIC)
        x, y = 5 * (i % 24), 3 * (i % 24)
        yield np.asarray(picture)[y : y + HEIGHT, x : x + WIDTH]


def prepare(folder: Path, data: str, codecs: list[str]) -> None:
    """For each codec: a file, its stream for `nvdec_rate`, and FILES copies of the file."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in codecs:
        codec, short, options = CODECS[name]
        path = folder / f"{short}.{'webm' if short == 'vp9' else 'mp4'}"
        if not path.exists():
            encode(path, folder / f"{short}.stream", data, codec, options)
        for i in range(FILES):
            copy = folder / f"{short}-{i}{path.suffix}"
            if not copy.exists():
                copy.write_bytes(path.read_bytes())


def encode(path: Path, stream_path: Path, data: str, codec: str, options: dict[str, str]) -> None:
    import av
    from av.bitstream import BitStreamFilterContext

    with av.open(str(path), "w") as out:
        stream = out.add_stream(codec, rate=30, options=options)
        stream.height, stream.width, stream.pix_fmt = HEIGHT, WIDTH, "yuv420p"
        for image in moving(data):
            out.mux(stream.encode(av.VideoFrame.from_ndarray(np.ascontiguousarray(image), "rgb24")))
        out.mux(stream.encode())
    with av.open(str(path)) as file, stream_path.open("wb") as to:
        is_vp9 = codec == "libvpx-vp9"
        kind = {"libx264": "h264_mp4toannexb", "libx265": "hevc_mp4toannexb", "libvpx-vp9": "null"}[codec]
        with_start_codes = BitStreamFilterContext(kind, file.streams.video[0])
        for packet in file.demux(video=0):
            for p in with_start_codes.filter(packet) if packet.size else []:
                to.write((p.size.to_bytes(4, "little") if is_vp9 else b"") + bytes(p))


# Contenders: each yields the number of frames of its batches ----------------------------------------------------------


def files_of(o: argparse.Namespace, codec: str) -> list[str]:
    short = CODECS[codec][1]
    return sorted(str(p) for p in Path(o.data).glob(f"{short}-*"))


PIPELINE: list[Any] = []


def run(pipe: Any, warm_up_s: float) -> Iterator[int]:
    pipe.build()
    PIPELINE.append(pipe)
    begin = time.perf_counter()
    while True:
        n = len(pipe.run()[0]) * CLIP
        if time.perf_counter() - begin > warm_up_s:
            yield n


def by_penstock(o: argparse.Namespace, codec: str, device: str = "gpu") -> Iterator[int]:
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=BATCH, num_threads=THREADS, device_id=0, seed=1)
    def pipe() -> Any:
        frames = fn.readers.video(device=device, filenames=files_of(o, codec), sequence_length=CLIP)
        return frames if device == "gpu" else frames.gpu()

    # The driver creates decoders one at a time, in a quarter of a second each.
    yield from run(pipe(), WARM_UP_S if device == "gpu" else 0)


def by_dali(o: argparse.Namespace, codec: str, how: str) -> Iterator[int]:
    from nvidia.dali import fn, pipeline_def, types

    @pipeline_def(batch_size=BATCH, num_threads=THREADS, device_id=0, seed=1)
    def pipe() -> Any:
        arguments = {"filenames": files_of(o, codec), "sequence_length": CLIP}
        if how == "readers.video":
            return fn.readers.video(device="gpu", **arguments)
        if how == "experimental.readers.video":
            return fn.experimental.readers.video(device="gpu", **arguments)
        files, _ = fn.readers.file(files=files_of(o, codec))
        start = fn.random.uniform(values=[float(k) for k in range(0, FRAMES, CLIP)])
        return fn.experimental.decoders.video(
            files, device="mixed", start_frame=fn.cast(start, dtype=types.INT32), sequence_length=CLIP
        )

    yield from run(pipe(), 1)


def known() -> dict[str, float]:
    """Penstock's statistics about its decoders and its memory."""
    pipe = PIPELINE[0]
    if not hasattr(pipe, "explain"):
        return {}
    gpu = pipe.stats()["gpu"]
    return {f"by {name}": n for name, n in gpu["decoders"].items()} | {"gpu_mb": gpu["peak_memory_mb"]}


def for_long(o: argparse.Namespace) -> None:
    """Memory, threads and descriptors when the CPU's share of the videos has settled, and later."""
    found: dict[str, float] = {}
    batches, n = by_penstock(o, "H.264"), 0
    while n < (SETTLED + MORE) * CLIP:
        n += next(batches)
        if n in (SETTLED * CLIP, (SETTLED + MORE) * CLIP):
            when = "before" if n == SETTLED * CLIP else "after"
            gpu = PIPELINE[0].stats()["gpu"]["peak_memory_mb"]
            found |= {f"{k} {when}": v for k, v in footprint().items()} | {f"GPU MB {when}": gpu}
    print(json.dumps(found), flush=True)
    os._exit(0)


OURS, ENGINES, OUR_CPU = "penstock", "the engines alone, {} sessions", "penstock, decoding by the CPU"
DALIS = ("readers.video", "experimental.decoders.video", "experimental.readers.video")
SESSIONS = (7, 14)  # one or two sessions per engine
SETTLED, MORE = 4000, 8000  # clips
MEMORY = f"memory of {MORE:,} clips"


def contenders(codec: str) -> list[str]:
    dali = [f"DALI, {how}" for how in DALIS] if codec != "VP9" else []
    few, many = (ENGINES.format(n) for n in SESSIONS)
    return [f"{codec}: {c}" for c in (OURS, many, *dali, OUR_CPU, few)]


def measured(name: str, o: argparse.Namespace) -> dict[str, float]:
    """One run of a contender in a separate process. Raises RuntimeError if it fails."""
    codec, _, contender = name.partition(": ")
    if contender.startswith("the engines"):
        short = CODECS[codec][1]
        sessions = next(n for n in SESSIONS if contender == ENGINES.format(n))
        command = [o.engines, str(o.seconds), str(sessions), short, str(Path(o.folder, f"{short}.stream"))]
    else:
        command = [sys.executable, __file__, "--worker", name, "--data", o.folder, "--seconds", str(o.seconds)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    except (OSError, subprocess.TimeoutExpired) as e:
        raise RuntimeError(str(e)) from None
    line = (done.stdout.strip().splitlines() or [""])[-1]
    try:
        return {"images_per_s": float(line)} if contender.startswith("the engines") else json.loads(line)
    except ValueError:
        raise RuntimeError((done.stderr.strip().splitlines() or ["no output"])[-1]) from None


def work(o: argparse.Namespace) -> None:
    codec, _, contender = o.worker.partition(": ")
    if o.worker == MEMORY:
        return for_long(o)
    if contender == OURS:
        batches = lambda o: by_penstock(o, codec)
    elif contender == OUR_CPU:
        batches = lambda o: by_penstock(o, codec, "cpu")
    else:
        batches = lambda o: by_dali(o, codec, contender.removeprefix("DALI, "))
    measure.work(batches, o, known)


def main() -> None:
    parser = measure.arguments(__doc__.splitlines()[0])
    parser.set_defaults(rounds=3)
    parser.add_argument("--folder", default="build/videos_gpu", help="where videos are")
    parser.add_argument("--engines", default="build/nvdec_rate", help="bench/native/nvdec_rate.cpp, compiled")
    parser.add_argument("--limit", type=float, default=600, help="seconds after which no contender begins")
    o = parser.parse_args()
    if o.worker:
        return work(o)
    begin = time.perf_counter()
    codecs = ["H.264"] if o.only == MEMORY else [c for c in CODECS if o.only in c]
    prepare(Path(o.folder), o.data, codecs)
    names = [n for c in codecs for n in contenders(c)] if o.only != MEMORY else []
    kept = Path(o.folder, "results.json")
    found: dict[str, list[dict[str, float]]] = json.loads(kept.read_text()) if kept.exists() else {}
    todo = [name for k in range(o.rounds) for name in names if len(found.get(name, ())) <= k]
    if o.only in ("", MEMORY):
        todo.insert(len(names), MEMORY)  # after the first round
    failed: set[str] = set()
    for name in todo:
        if name in failed or time.perf_counter() - begin > o.limit:
            continue
        try:
            found.setdefault(name, []).append(measured(name, o))
            print(name, found[name][-1], flush=True)
        except RuntimeError as e:
            failed.add(name)
            print(f"{name}: could not run: {e}", file=sys.stderr, flush=True)
        kept.write_text(json.dumps(found))
    measure.write(o.out, "video_gpu.md", report(found))


def report(found: dict[str, list[dict[str, float]]]) -> str:
    from images_gpu import _gpu

    lines = ["# Video on the GPU", "", __doc__.split("\n\n")[2].replace("\n", " "), "", measure.machine()]
    lines += [f"{_gpu()}. {measure.versions('nvidia-dali-cuda130', 'numpy')}.", ""]
    for codec in CODECS:
        rows = {n.partition(": ")[2]: found[n] for n in contenders(codec) if found.get(n)}
        if not rows:
            continue
        rates = {n: statistics.median(r["images_per_s"] for r in runs) for n, runs in rows.items()}
        lines += [f"## {codec} 1080p, batches of {BATCH} clips of {CLIP} frames", ""]
        lines += ["| | frames/s | least and most | runs | processor s per 1,000 frames | decoded by |"]
        lines += ["|---|---|---|---|---|---|"]
        for n, runs in rows.items():
            each, last = [r["images_per_s"] for r in runs], runs[-1]
            cpu = f"{1000 * last['cpu_s'] / last['images_per_s'] / last['seconds']:.2f}" if "cpu_s" in last else ""
            whom = ", ".join(f"{k[3:]} {v:,.0f}" for k, v in last.items() if k.startswith("by ") and v)
            row = f"| {n} | {rates[n]:,.0f} | {min(each):,.0f} to {max(each):,.0f} | {len(runs)} | {cpu} | {whom} |"
            lines.append(row)
        engines, dali = (max([0, *(r for n, r in rates.items() if n.startswith(w))]) for w in ("the engines", "DALI"))
        ours, cpu = rates.get(OURS, 0), rates.get(OUR_CPU, 0)
        lines += ["", "| claim | ratio | at least | |", "|---|---|---|---|"]
        for text, rival, least in (
            ("against DALI's best", dali, 4),
            ("against the engines alone", engines, 0.9),
            ("against the engines and what the CPU's threads do alone", engines + cpu, None),
        ):
            if rival and ours:
                verdict = "" if least is None else "reached" if ours / rival >= least else "**missed**"
                lines.append(f"| {text} | {ours / rival:.2f} | {'' if least is None else least} | {verdict} |")
        lines.append("")
    if found.get(MEMORY):
        last = found[MEMORY][-1]
        told = "; ".join(f"{k} {last[k + ' before']:,.0f}, then {last[k + ' after']:,.0f}" for k in (*UNITS, "GPU MB"))
        lines += [
            f"## {MEMORY.capitalize()}",
            "",
            f"After {SETTLED:,} clips of H.264, and after {MORE:,} more: {told}.",
            "",
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
