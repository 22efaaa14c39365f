# SPDX-License-Identifier: Apache-2.0
"""Video on the CPU against torchcodec, decord, PyAV and DALI: each contender in a process of its own, in turns.

    python bench/video.py [--rivals PYTHON] [--only NAME] [--rounds 5] [--folder FOLDER]

Videos are made here with PyAV (H.264, and VP9 for DALI, whose CPU decoder has no H.264). `--rivals` is a Python in
which torchcodec and decord are installed; without it those are left out. Results are kept beside the videos, so that a
long measurement can be made in pieces (`--only`). Each number is the best of several rounds;
all contenders run in every round. Where others use the machine, too, processor seconds are what can be compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import measure
import numpy as np

ROOT = Path(__file__).parents[1]
SIZES = {"480p": (480, 854), "1080p": (1080, 1920)}
CLIPS, CLIP = 50, 16  # for the row with random positions


# Videos ---------------------------------------------------------------------------------------------------------------


def picture(i: int, height: int, width: int, base: np.ndarray) -> np.ndarray:
    """A moving textured picture."""
    return np.roll(base, (3 * i, 5 * i), (0, 1))


def make(path: Path, size: tuple[int, int], n: int, codec: str = "libx264", gop: int = 48, repeat: int = 1) -> None:
    """A video of n frames, encoded once and repeated `repeat` times."""
    import av

    if path.exists():
        return
    height, width = size
    rng = np.random.default_rng(0)
    small = rng.integers(0, 256, (height // 16 + 1, width // 16 + 1, 3), "u1")
    base = np.kron(small, np.ones((16, 16, 1), "u1"))[:height, :width]
    temporary = path.with_name("unfinished-" + path.name)
    options = (
        {"g": str(gop), "preset": "veryfast", "crf": "28"} if codec == "libx264" else {"g": str(gop), "cpu-used": "8"}
    )
    with av.open(str(temporary), "w") as out:
        stream = out.add_stream(codec, rate=30, options=options)
        stream.height, stream.width, stream.pix_fmt = height, width, "yuv420p"
        packets = []
        for i in range(n):
            packets += stream.encode(av.VideoFrame.from_ndarray(picture(i, height, width, base), "rgb24"))
        packets += stream.encode()
        for k in range(repeat):
            for p in packets:
                copy = av.Packet(bytes(p))
                copy.stream, copy.time_base, copy.is_keyframe = stream, p.time_base, p.is_keyframe
                copy.pts, copy.dts = (t + round(k * n / 30 / p.time_base) for t in (p.pts, p.dts))
                out.mux(copy)
    temporary.rename(path)


# Contenders: each gets the paths and returns the number of frames it made ---------------------------------------------


def all_by_penstock(path: str) -> int:
    import penstock.video

    return sum(1 for _ in penstock.video.open(path))


def all_by_pyav(path: str, threads: int = 1) -> int:
    import av

    with av.open(path) as file:
        file.streams.video[0].codec_context.thread_count = threads
        return sum(f.to_ndarray(format="rgb24").shape[2] == 3 for f in file.decode(video=0))


def all_by_ffmpeg(path: str) -> int:
    """FFmpeg's decoder alone, with one thread, without conversion."""
    import av

    with av.open(path) as file:
        file.streams.video[0].codec_context.thread_count = 1
        return sum(f.width > 0 for f in file.decode(video=0))


def all_by_torchcodec(path: str) -> int:
    from torchcodec.decoders import VideoDecoder

    return sum(f.shape[0] == 3 for f in VideoDecoder(path, num_ffmpeg_threads=2))


def all_by_decord(path: str) -> int:
    import decord

    reader = decord.VideoReader(path, num_threads=2)
    return sum(reader[i].shape[2] == 3 for i in range(len(reader)))


def places(frames: int) -> list[int]:
    return np.random.default_rng(7).integers(0, frames - CLIP, CLIPS).tolist()


def clips_by_penstock(path: str) -> int:
    from penstock import fn, pipeline_def

    frames, listed = length(path), Path(path).with_suffix(f".{os.getpid()}.txt")
    listed.write_text("".join(f"{path} 0 {p} {p + CLIP}\n" for p in places(frames)))

    @pipeline_def(batch_size=5, num_threads=2)
    def pipe() -> Any:
        return fn.readers.video_resize(
            file_list=str(listed), file_list_frame_num=True, sequence_length=CLIP, size=(224, 224), antialias=False
        )[0]

    p = pipe()
    count = sum(x.shape()[0][0] * len(x) for x in (p.run()[0] for _ in range(CLIPS // 5)))
    listed.unlink()
    return count


def length(path: str) -> int:
    import penstock.video

    return len(penstock.video.open(path))


def pictures_decoded(path: str) -> int:
    """The number of pictures decoded for all clips, each by itself."""
    import ctypes

    import penstock.video
    from penstock.core import kernels

    video, count, error = penstock.video.open(path), 0, ctypes.create_string_buffer(kernels.ERROR_SIZE)
    out = np.empty((CLIP, video.height, video.width, 3), "u1")
    for p in places(len(video)):
        frames = np.arange(p, p + CLIP, dtype="i4")
        address, n = ctypes.c_void_p(frames.ctypes.data), ctypes.c_int64(CLIP)
        handle, to = ctypes.c_void_p(video._handle.value), ctypes.c_void_p(out.ctypes.data)
        count += kernels.library().video_read(handle, address, n, ctypes.c_int32(0), to, error)
    return count


def pictures_in_the_stream(path: str) -> int:
    """The number of pictures in the file from the key frame before each clip to the clip's last packet."""
    import av

    with av.open(path) as file:
        packets = [(p.pts, p.is_keyframe) for p in file.demux(video=0) if p.pts is not None]
    place = {pts: i for i, (pts, _) in enumerate(packets)}
    shown, keys = sorted(place), [i for i, (_, is_key) in enumerate(packets) if is_key]
    count = 0
    for p in places(len(shown)):
        wanted = [place[t] for t in shown[p : p + CLIP]]
        count += max(wanted) + 1 - keys[int(np.searchsorted(keys, min(wanted), "right")) - 1]
    return count


def clips_by_torchcodec(path: str) -> int:
    import torch
    from torchcodec.decoders import VideoDecoder

    decoder = VideoDecoder(path, num_ffmpeg_threads=2)
    count = 0
    for p in places(len(decoder)):
        frames = decoder.get_frames_in_range(p, p + CLIP).data
        count += len(torch.nn.functional.interpolate(frames, (224, 224), mode="bilinear"))
    return count


def clips_by_decord(path: str) -> int:
    import decord

    reader = decord.VideoReader(path, width=224, height=224, num_threads=2)
    return sum(len(reader.get_batch(range(p, p + CLIP)).asnumpy()) for p in places(len(reader)))


def clips_by_dali(path: str) -> int:
    import nvidia.dali.fn as fn
    from nvidia.dali import pipeline_def

    frames, listed = length(path), Path(path).with_suffix(f".{os.getpid()}.txt")
    listed.write_text("".join(f"{path} 0 {p} {p + CLIP}\n" for p in places(frames)))

    @pipeline_def(batch_size=5, num_threads=2, device_id=None)
    def pipe() -> Any:
        video, _ = fn.experimental.readers.video(
            device="cpu", file_list=str(listed), file_list_format="frames", sequence_length=CLIP
        )
        return fn.resize(video, size=(224, 224), antialias=False)

    p = pipe()
    p.build()
    count = sum(x.shape()[0][0] * len(x) for x in (p.run()[0] for _ in range(CLIPS // 5)))
    listed.unlink()
    return count


def one_clip(path: str, at_the_end: bool) -> int:
    import penstock.video

    video = penstock.video.open(path)
    begin = len(video) - 10 - CLIP if at_the_end else 10
    begin -= begin % 48  # at the same distance from a key frame as the other
    start, rounds = time.perf_counter(), 20
    for _ in range(rounds):
        video[begin + 5 : begin + 5 + CLIP]
    ONE["seconds"] = (time.perf_counter() - start) / rounds
    return CLIP


ONE: dict[str, float] = {}  # measured by a contender itself


UNITS = ("MB", "threads", "descriptors")


def footprint() -> dict[str, float]:
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {
        "MB": int(status["VmRSS"].split()[0]) / 1e3,
        "threads": int(status["Threads"]),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }


def clips_for_long(path: str) -> int:
    """Memory, threads and descriptors after 100 and after 1,100 clips."""
    from penstock import fn, pipeline_def

    @pipeline_def(batch_size=5, num_threads=2)
    def pipe() -> Any:
        return fn.readers.video_resize(
            filenames=[path], sequence_length=CLIP, size=(224, 224), random_shuffle=True, seed=1
        )

    p = pipe()
    for k in range(220):
        p.run()
        if k == 19:
            before = footprint()
    ONE.update({f"{name} after": value for name, value in footprint().items()})
    ONE.update({f"{name} before": value for name, value in before.items()})
    return 1000 * CLIP


def build(folder: str) -> int:
    from penstock import fn, pipeline_def

    files = sorted(str(p) for p in Path(folder).iterdir())

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe() -> Any:
        return fn.readers.video(filenames=files, sequence_length=16)

    pipe().build()
    return len(files)


COUNTED = "pictures for these 50 clips, 800 frames, each clip by itself"
# name -> (kind of videos, contenders by name)
TASKS: dict[str, tuple[str, dict[str, Callable[..., int]]]] = {}
for _size in SIZES:
    TASKS[f"all frames, {_size} H.264"] = (
        f"h264-{_size}",
        {
            "penstock": all_by_penstock,
            "FFmpeg's decoding alone": all_by_ffmpeg,
            "PyAV": all_by_pyav,
            "torchcodec": all_by_torchcodec,
            "decord": all_by_decord,
        },
    )
TASKS["50 clips of 16 frames of a 10-minute file, to 224 x 224, H.264"] = (
    "long",
    {"penstock": clips_by_penstock, "torchcodec": clips_by_torchcodec, "decord": clips_by_decord},
)
TASKS[COUNTED] = (
    "long",
    {"decoded by penstock": pictures_decoded, "from the key frames to the ends of clips": pictures_in_the_stream},
)
TASKS["50 clips of 16 frames of a 1-minute file, to 224 x 224, VP9"] = (
    "vp9",
    {"penstock": clips_by_penstock, "DALI": clips_by_dali, "torchcodec": clips_by_torchcodec},
)
TASKS["a clip of a two-hour file"] = (
    "hours",
    {"at the start": lambda p: one_clip(p, False), "at the end": lambda p: one_clip(p, True)},
)
TASKS["memory of 1,000 clips"] = ("long", {"penstock": clips_for_long})
TASKS["building a reader over 10,000 files of 10 s"] = ("many", {"first": build, "kept": build})


def prepare(folder: Path, kinds: set[str]) -> dict[str, str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name, size in SIZES.items():
        if f"h264-{name}" in kinds:
            make(folder / f"h264-{name}.mp4", size, 300)
    if "long" in kinds:
        make(folder / "long.mp4", SIZES["480p"], 600, repeat=30)
    if "vp9" in kinds:
        make(folder / "vp9.webm", SIZES["480p"], 300, "libvpx-vp9", repeat=6)
    if "hours" in kinds:
        make(folder / "hours.mp4", (240, 428), 480, repeat=450)
    if "many" in kinds:
        make(folder / "small.mp4", (96, 128), 300)
        (folder / "many").mkdir(exist_ok=True)
        data = (folder / "small.mp4").read_bytes()
        for i in range(10000):
            path = folder / "many" / f"{i:05}.mp4"
            if not path.exists():
                path.write_bytes(data)
    names = {"long": "long.mp4", "vp9": "vp9.webm", "hours": "hours.mp4", "many": "many"}
    return {k: str(folder / names.get(k, f"{k}.mp4")) for k in kinds}


def run(task: str, contender: str, path: str, python: str, cache: Path) -> dict[str, Any] | None:
    """Runs a contender in a separate process; None if it fails."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    command = [python, __file__, "--task", task, "--contender", contender, "--folder", path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    lines = done.stdout.strip().splitlines()
    if done.returncode or not lines:
        print(f"{contender}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return None
    return json.loads(lines[-1])


def worker(task: str, contender: str, path: str) -> None:
    work = TASKS[task][1][contender]
    if task.startswith("building"):
        import penstock.video  # noqa: F401
    work(path) if task.startswith("all") else None  # loading at first use is not measured
    begin, used = time.perf_counter(), time.process_time()
    count = work(path)
    took = {"frames": count, "seconds": time.perf_counter() - begin, "processor": time.process_time() - used}
    print(json.dumps({**took, **ONE}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rivals", default="", help="a Python that has torchcodec and decord")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="only the tasks whose name contains this")
    parser.add_argument("--folder", default="build/videos", help="where videos are made, 350 MB")
    parser.add_argument("--out", default=str(ROOT / "bench/results/video.md"))
    parser.add_argument("--task", default="", help=argparse.SUPPRESS)
    parser.add_argument("--contender", default="", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.task:
        return worker(args.task, args.contender, args.folder)
    tasks = {k: v for k, v in TASKS.items() if args.only in k}
    folder = Path(args.folder).resolve()
    paths = prepare(folder, {kind for kind, _ in tasks.values()})
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for name, (kind, contenders) in tasks.items():
        best: dict[str, dict[str, Any]] = {}
        for k in range(1 if name.startswith("memory") or name == COUNTED else args.rounds):
            cache = folder / f"cache-{os.getpid()}-{k}"
            for contender in contenders:
                python = args.rivals if contender in ("torchcodec", "decord") else sys.executable
                got = run(name, contender, paths[kind], python, cache) if python else None
                if got and (contender not in best or got["seconds"] < best[contender]["seconds"]):
                    best[contender] = got
        found[name] = best
        print(name, {c: (round(g["seconds"], 3), round(g["processor"], 2), g["frames"]) for c, g in best.items()})
    write(Path(args.out), measure.kept(folder / "results.json", found))


def write(path: Path, found: dict[str, dict[str, dict[str, Any]]]) -> None:
    lines = ["# Video on the CPU", "", __doc__.split("\n\n")[2].replace("\n", " "), "", measure.machine(), ""]
    for name, best in ((n, found[n]) for n in TASKS if n in found):
        lines += [f"## {name[0].upper()}{name[1:]}", ""]
        if name == COUNTED:
            lines += ["| | pictures |", "|---|---|", *(f"| {c} | {g['frames']:,} |" for c, g in best.items()), ""]
            continue
        lines += ["| | seconds | processor seconds | frames (files) per second |", "|---|---|---|---|"]
        for contender, g in best.items():
            rate = g["frames"] / g["seconds"]
            lines.append(f"| {contender} | {g['seconds']:.3f} | {g['processor']:.2f} | {rate:,.0f} |")
        for g in best.values():
            if "MB before" in g:
                told = "; ".join(f"{k} {g[k + ' before']:,.0f}, then {g[k + ' after']:,.0f}" for k in UNITS)
                lines += ["", f"After 100 clips, and after 1,000 more: {told}."]
        lines.append("")
    path.write_text("\n".join(lines))


if __name__ == "__main__":
    main()
