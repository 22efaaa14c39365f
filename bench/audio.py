# SPDX-License-Identifier: Apache-2.0
"""Audio on the CPU against DALI, and torchaudio, librosa and soxr where they are installed: files to log-mel features,
decoding, and each operator, in one process, in turns.

    python bench/audio.py [--threads 2] [--batch 32] [--seconds 10] [--only NAME...]

Sounds are made here: speech-like chirps and noise at 16 kHz; FLAC needs python-soundfile. Inputs are fed once and
repeated without a copy. What takes 5 s out of sounds of 60 s, at random places, is compared with sounds of 5 s of which
there are so many that as many bytes take turns: neither is in the processor's caches. Each number is the best of
several rounds; all libraries run in every round. torchaudio computes a batch of equal lengths at once; files are
decoded, and librosa and soxr called, in a pool of threads.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests/operators/audio")]

import measure  # noqa: E402
from sound_files import encoded, pcm, wav  # noqa: E402

RATE = 16000
Map = Callable[[Callable, list[np.ndarray]], Iterable]  # the `map` of a pool of threads
Run = Callable[[list[np.ndarray]], Any]  # computes a batch
WARM_UP, ROUNDS = 3, 5
PACKAGES = ("nvidia-dali-cuda130", "torchaudio", "librosa", "soxr", "soundfile", "numpy")


def signals(batch: int, seconds: int) -> list[np.ndarray]:
    """Gliding tones in bursts, with noise."""
    rng = np.random.default_rng(0)
    t = np.arange(RATE * seconds) / RATE
    made = []
    for _ in range(batch):
        glide = 2 * np.pi * (rng.uniform(100, 300) * t + rng.uniform(50, 400) * np.sin(rng.uniform(1, 4) * t))
        loudness = np.clip(np.sin(2 * np.pi * rng.uniform(0.5, 3) * t), 0, 1)
        voice = sum(np.sin(k * glide) / k for k in range(1, 9))
        made.append((0.2 * loudness * voice + 0.01 * rng.standard_normal(len(t))).astype("f4"))
    return made


def log_mel(fn: Any, x: Any) -> Any:
    spectrum = fn.spectrogram(x, nfft=512, window_length=400, window_step=160)
    mel = fn.mel_filter_bank(spectrum, sample_rate=float(RATE), nfilter=80)
    return fn.normalize(fn.to_decibels(mel), axes=[1])


def decode(fn: Any, file: Any) -> Any:
    return fn.decoders.audio(file, downmix=True)[0]


def five_seconds(fn: Any, file: Any) -> Any:
    start = fn.random.uniform(range=(0, 55 / 60), shape=[1])
    return fn.slice(decode(fn, file), rel_start=start, shape=[5 * RATE], axes=[0])


def antialiasing(fn: Any) -> dict[str, bool]:
    """No argument for DALI, whose operator lacks it; its output has aliases."""
    return {} if fn.__name__.startswith("nvidia") else {"antialias": True}


# name -> (kind of inputs, layout, operators, smallest ratio)
CASES: dict[str, tuple[str, str | None, Callable[[Any, Any], Any], float]] = {
    "WAV > log-mel of 80": ("wav", None, lambda fn, x: log_mel(fn, decode(fn, x)), 3),
    "FLAC > log-mel of 80": ("flac", None, lambda fn, x: log_mel(fn, decode(fn, x)), 1.3),
    "WAV, decoding": ("wav", None, decode, 1),
    "FLAC, decoding": ("flac", None, decode, 1),
    "5 s out of 60 s of WAV": ("long wav", None, five_seconds, 2),
    "5 s out of 60 s of FLAC": ("long flac", None, five_seconds, 2),
    "5 s of WAV": ("short wav", None, decode, 1),
    "5 s of FLAC": ("short flac", None, decode, 1),
    "5 s out of files of 60 s of WAV": ("files, long wav", None, five_seconds, 2),
    "5 s out of files of 60 s of FLAC": ("files, long flac", None, five_seconds, 2),
    "files of 5 s of WAV": ("files, short wav", None, decode, 1),
    "files of 5 s of FLAC": ("files, short flac", None, decode, 1),
    "log-mel of 80": ("signal", "t", log_mel, 3),
    "spectrogram, nfft=512": ("signal", "t", lambda fn, x: fn.spectrogram(x, window_length=400, nfft=512), 2),
    "spectrogram, nfft=400": ("signal", "t", lambda fn, x: fn.spectrogram(x, window_length=400), 2),
    "power_spectrum": ("signal", "t", lambda fn, x: fn.power_spectrum(x, nfft=1 << 18), 2),
    "mel_filter_bank": ("spectrum", "ft", lambda fn, x: fn.mel_filter_bank(x, sample_rate=16000.0, nfilter=80), 2),
    "to_decibels": ("spectrum", "ft", lambda fn, x: fn.to_decibels(x), 2),
    "mfcc": ("mel", "ft", lambda fn, x: fn.mfcc(x), 2),
    "preemphasis_filter": ("signal", "t", lambda fn, x: fn.preemphasis_filter(x), 2),
    "nonsilent_region": ("signal", "t", lambda fn, x: fn.nonsilent_region(x), 2),
    "audio_resample, 16 to 22.05 kHz": (
        "signal",
        "t",
        lambda fn, x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0),
        4,
    ),
    "audio_resample, 16 to 22.05 kHz, antialias": (
        "signal",
        "t",
        lambda fn, x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0, **antialiasing(fn)),
        0,
    ),
    "audio_resample, 16 to 8 kHz, antialias": (
        "signal",
        "t",
        lambda fn, x: fn.audio_resample(x, in_rate=16000.0, out_rate=8000.0, **antialiasing(fn)),
        0,
    ),
}


def decoded_by_soundfile(file: np.ndarray) -> np.ndarray:
    import soundfile

    return soundfile.read(io.BytesIO(file), dtype="float32")[0]


def torchaudio_log_mel(map_: Map) -> Run:
    import torch
    import torchaudio

    mel = torchaudio.transforms.MelSpectrogram(
        RATE, n_fft=512, win_length=400, hop_length=160, n_mels=80, norm="slaney", mel_scale="slaney"
    )
    decibels = torchaudio.transforms.AmplitudeToDB(top_db=80)

    def run(files: list[np.ndarray]) -> Any:
        x = decibels(mel(torch.from_numpy(np.stack(list(map_(decoded_by_soundfile, files))))))
        deviation, mean = torch.std_mean(x, dim=2, keepdim=True)
        return (x - mean) / deviation

    return run


def librosa_log_mel(map_: Map) -> Run:
    import librosa

    def one(file: np.ndarray) -> np.ndarray:
        mel = librosa.feature.melspectrogram(
            y=decoded_by_soundfile(file), sr=RATE, n_fft=512, win_length=400, hop_length=160, n_mels=80
        )
        x = librosa.power_to_db(mel, ref=np.max)
        return (x - x.mean(1, keepdims=True)) / x.std(1, keepdims=True)

    return lambda files: list(map_(one, files))


def libsndfile(map_: Map) -> Run:
    return lambda files: list(map_(decoded_by_soundfile, files))


def soxr_hq(to: int) -> Callable[[Map], Run]:
    def of(map_: Map) -> Run:
        import soxr

        return lambda sounds: list(map_(lambda x: soxr.resample(x, RATE, to, quality="HQ"), sounds))

    return of


# name -> rivals with the same result, each with its smallest ratio
RIVALS: dict[str, dict[str, tuple[Callable[[Map], Run], float]]] = {
    "WAV > log-mel of 80": {"torchaudio": (torchaudio_log_mel, 3), "librosa": (librosa_log_mel, 8)},
    "FLAC, decoding": {"libsndfile": (libsndfile, 0.95)},
    "audio_resample, 16 to 22.05 kHz, antialias": {"soxr HQ": (soxr_hq(22050), 1)},
    "audio_resample, 16 to 8 kHz, antialias": {"soxr HQ": (soxr_hq(8000), 1)},
}


def inputs(batch: int, seconds: int) -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(1)
    sounds = signals(batch, seconds)
    long = [np.tile(x, -(-60 // seconds))[: 60 * RATE] for x in sounds]
    short = [x[i * RATE : (i + 5) * RATE] for x in long for i in range(0, 60, 5)]
    frames = seconds * 100 + 1
    made = {
        "signal": sounds,
        "spectrum": [rng.random((257, frames)).astype("f4") for _ in range(batch)],
        "mel": [rng.random((80, frames)).astype("f4") for _ in range(batch)],
        "wav": [wav(pcm(x[:, None], 16)[1]) for x in sounds],
        "long wav": [wav(pcm(x[:, None], 16)[1]) for x in long],
        "short wav": [wav(pcm(x[:, None], 16)[1]) for x in short],
    }
    try:
        made["flac"] = [encoded(x, RATE, "FLAC") for x in sounds]
        made["long flac"] = [encoded(x, RATE, "FLAC") for x in long]
        made["short flac"] = [encoded(x, RATE, "FLAC") for x in short]
    except ImportError:
        print("python-soundfile is not there: no FLAC", file=sys.stderr)
    return made


def written(data: list[np.ndarray], folder: Path) -> list[str]:
    folder.mkdir()
    paths = [folder / f"{i}.sound" for i in range(len(data))]
    for path, x in zip(paths, data):
        x.tofile(path)
    return [str(path) for path in paths]


def build(library: str, data: list, batch: int, layout: str | None, define: Callable, threads: int) -> Any:
    if library == "DALI":
        from nvidia.dali import fn, pipeline_def
    else:
        from penstock import fn, pipeline_def

    batches = [data[i : i + batch] for i in range(0, len(data), batch)]

    @pipeline_def(batch_size=batch, num_threads=threads, device_id=None, seed=1)
    def pipe():
        if isinstance(data[0], str):
            source = fn.readers.file(files=data)[0]
        else:
            source = fn.external_source(source=lambda i: batches[i % len(batches)], layout=layout, no_copy=True)
        out = define(fn, source)
        return tuple(out) if isinstance(out, (list, tuple)) else out

    pipe = pipe()
    pipe.build()
    for _ in range(WARM_UP):
        pipe.run()
    return pipe


def time_of(run: Callable[[], Any]) -> float:
    """Seconds per batch, measured for at least a quarter of a second, after previous pipelines are idle."""
    time.sleep(0.3)
    for _ in range(WARM_UP):  # batches made ahead would cost nothing
        run()
    begin, n = time.perf_counter(), 0
    while (took := time.perf_counter() - begin) < 0.25 or n < 4:
        run()
        n += 1
    return took / n


def rivals_of(name: str, data: list[np.ndarray], pool: ThreadPoolExecutor) -> dict[str, Callable[[], Any]]:
    """The installed rivals, each as a function that computes a batch and has run once."""
    runs = {}
    for rival, (make, _) in RIVALS.get(name, {}).items():
        try:
            run = make(pool.map)
            run(data)
        except ImportError as e:
            print(f"{rival} is not there: {e}", file=sys.stderr)
            continue
        runs[rival] = partial(run, data)
    return runs


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--batch", type=int, default=32)
    p.add_argument("--seconds", type=int, default=10, help="length of the sounds")
    p.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    p.add_argument("--output", default="")
    o = p.parse_args()
    data: dict[str, list] = dict(inputs(o.batch, o.seconds))
    folder = tempfile.TemporaryDirectory()
    for kind in [k for k in data if "long" in k or "short" in k]:
        data[f"files, {kind}"] = written(data[kind], Path(folder.name) / kind)
    rows, missed, pool = [], [], ThreadPoolExecutor(o.threads)
    if importlib.util.find_spec("torch"):
        __import__("torch").set_num_threads(o.threads)
    parts: dict[str, float] = {}  # penstock's seconds for 5 s of sound, alone and out of 60 s
    for name, (kind, layout, define, wanted) in CASES.items():
        if kind not in data or (o.only and not any(part in name for part in o.only)):
            continue
        runs = {
            library: build(library, data[kind], o.batch, layout, define, o.threads).run
            for library in ("DALI", "penstock")
        }
        runs |= rivals_of(name, data[kind], pool)
        rounds = [[time_of(run) for run in runs.values()] for _ in range(ROUNDS)]
        times = dict(zip(runs, map(min, zip(*rounds))))
        length = o.batch * (60 if "long" in kind else 5 if "short" in kind else o.seconds)
        ours = parts[kind] = times["penstock"]
        for who, least in {"DALI": wanted, **{k: v[1] for k, v in RIVALS.get(name, {}).items()}}.items():
            if who not in times:
                continue
            ratio = times[who] / ours
            rows.append(
                f"| {name} | {who} | {length / times[who]:,.0f} | {length / ours:,.0f} | {ratio:.2f} x | {least:g} x |"
            )
            print(rows[-1], flush=True)
            if ratio < least:
                missed.append(f"{name} ({who})")
    costs = []
    for where, of in (("", "5 s out of 60 s of"), ("files, ", "5 s out of files of 60 s of")):
        for k in ("wav", "flac"):
            long, short = f"{where}long {k}", f"{where}short {k}"
            if {long, short} <= parts.keys():
                cost = f"{parts[long] / parts[short]:.2f} x what 5 s do (wanted: at most 1.3 x)"
                costs.append(f"{of} {k.upper()} cost {cost}.")
    print(*costs, sep="\n")
    text = f"""# Audio on the CPU

{measure.machine()}; {measure.versions(*PACKAGES)}; {o.threads} threads on {os.cpu_count()}
processors. Batches of {o.batch} sounds of {o.seconds} s at {RATE // 1000} kHz, synthesised. Times real time: seconds of
sound per second.
`python bench/audio.py`

| | against | its | penstock | ratio | wanted |
|---|---|---|---|---|---|
{chr(10).join(rows)}

{chr(10).join(costs)}

{f"Below what is wanted: {', '.join(missed)}." if missed else "All as fast as wanted."}
"""
    if not o.only:
        measure.write(o.output, "audio.md", text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
