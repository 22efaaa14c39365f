# SPDX-License-Identifier: Apache-2.0
"""Audio operators on the GPU against DALI's, and torchaudio's where it is installed: log-mel features and each
operator, in one process.

    python bench/audio_gpu.py [--batch 256] [--seconds 15] [--rounds 5] [--limit 90] [--only NAME...]

Signals are made here, at 16 kHz, and lie in the GPU's memory before they are timed. The libraries take turns; the
median of the rounds counts. What one of them can't do is said. The report is written after each case, and after
`--limit` seconds no further case begins. Needs neither PyTorch nor CuPy.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "src")]

import gpu_time  # noqa: E402
import measure  # noqa: E402

RATE = 16000
WARM_UP, SECONDS = 6, 0.06  # batches before the measurement; seconds per round


def log_mel(fn: Any, x: Any, **reference: float) -> Any:
    spectrum = fn.spectrogram(x, nfft=512, window_length=400, window_step=160)
    mel = fn.mel_filter_bank(spectrum, sample_rate=float(RATE), nfilter=80)
    return fn.to_decibels(mel, **reference)


def spectrogram(fn: Any, x: Any, nfft: int) -> Any:
    return fn.spectrogram(x, nfft=nfft, window_length=min(nfft, 400), window_step=160)


# name -> (kind of inputs, layout, operators)
CASES: dict[str, tuple[str, str, Callable[[Any, Any], Any]]] = {
    "log-mel of 80, reference=1": ("signal", "t", lambda fn, x: log_mel(fn, x, reference=1.0)),
    "log-mel of 80": ("signal", "t", log_mel),
    "log-mel of 80, normalized": ("signal", "t", lambda fn, x: fn.normalize(log_mel(fn, x), axes=[1])),
    "spectrogram, nfft=512": ("signal", "t", lambda fn, x: spectrogram(fn, x, 512)),
    "spectrogram, nfft=400": ("signal", "t", lambda fn, x: spectrogram(fn, x, 400)),
    "spectrogram, nfft=1024": ("signal", "t", lambda fn, x: spectrogram(fn, x, 1024)),
    "spectrogram, nfft=2048": ("signal", "t", lambda fn, x: spectrogram(fn, x, 2048)),
    "audio_resample, 16 to 22.05 kHz": (
        "signal",
        "t",
        lambda fn, x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0),
    ),
    "preemphasis_filter": ("signal", "t", lambda fn, x: fn.preemphasis_filter(x)),
    "mel_filter_bank": ("spectrum", "ft", lambda fn, x: fn.mel_filter_bank(x, sample_rate=16000.0, nfilter=80)),
    "to_decibels": ("spectrum", "ft", lambda fn, x: fn.to_decibels(x)),
    "mfcc": ("mel", "ft", lambda fn, x: fn.mfcc(x)),
    "nonsilent_region": ("signal", "t", lambda fn, x: fn.nonsilent_region(x)),
    "power_spectrum, nfft=262144": ("signal", "t", lambda fn, x: fn.power_spectrum(x, nfft=1 << 18)),
}


def inputs(batch: int, seconds: int) -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(1)
    frames = seconds * 100 + 1
    shapes = {"signal": (seconds * RATE,), "spectrum": (257, frames), "mel": (80, frames)}
    return {k: [rng.random(s, "f4") for _ in range(batch)] for k, s in shapes.items()}


def build(library: str, data: list[np.ndarray], layout: str, define: Callable, depth: int = 2) -> Any:
    """A pipeline on inputs that another pipeline of the same library has copied to the GPU once."""
    if library == "DALI":
        from nvidia.dali import fn, pipeline_def
    else:
        from penstock import fn, pipeline_def

    @pipeline_def(batch_size=len(data), num_threads=4, device_id=0, prefetch_queue_depth=1)
    def copying():
        return fn.external_source(source=lambda i: data, layout=layout).gpu()

    copier = copying()
    copier.build()
    (lying,) = copier.run()

    @pipeline_def(batch_size=len(data), num_threads=4, device_id=0, seed=1, prefetch_queue_depth=depth)
    def pipe():
        x = fn.external_source(source=lambda i: lying, layout=layout, no_copy=True, device="gpu")
        out = define(fn, x)
        return tuple(out) if isinstance(out, (list, tuple)) else out

    pipe = pipe()
    pipe.build()
    pipe.kept_alive = copier  # the pipeline that owns the memory of `lying`
    return pipe


def torchaudio(name: str, batch: int, seconds: int) -> Callable[[], Any] | None:
    """A function that computes a batch of a case with torchaudio; None if it lacks the operator."""
    import torch
    import torchaudio as ta

    x = torch.rand(batch, seconds * RATE, device="cuda")
    spectrum = {"n_fft": 512, "win_length": 400, "hop_length": 160}
    if name == "log-mel of 80":
        mel = ta.transforms.MelSpectrogram(RATE, n_mels=80, norm="slaney", mel_scale="slaney", **spectrum).to("cuda")
        decibels = ta.transforms.AmplitudeToDB()
        return lambda: decibels(mel(x))
    if name.startswith("spectrogram, nfft="):
        spectrum["n_fft"] = int(name.rpartition("=")[2])
        transform = ta.transforms.Spectrogram(**spectrum).to("cuda")
    elif name.startswith("audio_resample"):
        transform = ta.transforms.Resample(RATE, 22050, lowpass_filter_width=16).to("cuda")
    else:
        return None
    return lambda: transform(x)


def contenders(name: str, o: argparse.Namespace, data: dict[str, list[np.ndarray]]) -> dict[str, Callable]:
    """Functions that each return a function that computes a batch."""
    kind, layout, define = CASES[name]
    return {
        "DALI": lambda: build("DALI", data[kind], layout, define).run,
        "penstock": lambda: build("penstock", data[kind], layout, define).run,
        "torchaudio": lambda: torchaudio(name, o.batch, o.seconds),
    }


def time_of(run: Callable, wait: Callable[[], None]) -> float:
    """Microseconds per batch."""
    wait()
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < SECONDS or n < 8:
        run()
        n += 1
    wait()
    return (time.perf_counter() - begin) / n * 1e6


def measured(name: str, o: argparse.Namespace, data: dict, wait: Callable[[], None], notes: list[str]) -> dict:
    """Medians by library."""
    runs: dict[str, Callable] = {}
    for library, make in contenders(name, o, data).items():
        try:
            run = make()
            for _ in range(WARM_UP if run else 0):
                run()
            runs |= {library: run} if run else {}
        except ImportError:
            continue
        except Exception as e:
            notes.append(f"{name}: {library} can't do it: {' '.join(str(e).split())[:200]}")
            print(notes[-1], file=sys.stderr)
    times: dict[str, list[float]] = {library: [] for library in runs}
    for _ in range(o.rounds):
        for library, run in runs.items():
            times[library].append(time_of(run, wait))
    return {library: statistics.median(t) for library, t in times.items()}


def on_the_gpu(name: str, data: dict[str, list[np.ndarray]]) -> tuple[float, int, Any]:
    """GPU time of a batch in microseconds without other work, the bytes of its inputs and outputs, and the GPU."""
    kind, layout, define = CASES[name]
    pipe = build("penstock", data[kind], layout, define, depth=1)
    for _ in range(WARM_UP):
        pipe.run()
    device = gpu_time.of_a_batch(pipe)
    moved = sum(x.nbytes for x in data[kind]) + gpu_time.bytes_of_outputs(pipe.run())
    return device, moved, pipe._plan.session.device


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--seconds", type=int, default=15, help="length of the signals")
    p.add_argument("--rounds", type=int, default=5)
    p.add_argument("--limit", type=float, default=90, help="seconds after which no further case begins")
    p.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    p.add_argument("--output", default="")
    o = p.parse_args()
    begin = time.monotonic()
    data, wait, rows, notes, copy = inputs(o.batch, o.seconds), gpu_time.synchronize(), [], [], 0.0
    for name in CASES:
        if o.only and not any(part in name for part in o.only):
            continue
        if time.monotonic() - begin > o.limit:
            notes.append(f"{name}: not measured, as the time was over")
            continue
        times = measured(name, o, data, wait, notes)
        dali, ours, torch = (times.get(library, float("nan")) for library in ("DALI", "penstock", "torchaudio"))
        device, moved, gpu = on_the_gpu(name, data)
        copy = copy or gpu_time.copy_speed(gpu)
        row = f"| {name} | {dali:,.0f} | {torch:,.0f} | {ours:,.0f} | {device:,.0f} | {moved / device / copy:.0%} "
        rows.append(f"{row}| {dali / ours:.2f} x | {torch / ours:.2f} x |".replace("| nan x ", "| ").replace("nan", ""))
        print(rows[-1], flush=True)
        if not o.only or o.output:
            measure.write(o.output, "audio_gpu.md", report(o, rows, notes, gpu.name))
    return 0


def report(o: argparse.Namespace, rows: list[str], notes: list[str], gpu: str) -> str:
    left_out = "".join(f"\n* {note}" for note in notes)
    return f"""# Audio on the GPU

{gpu}; {measure.machine()}
{measure.versions("nvidia-dali-cuda130", "torchaudio", "numpy")}. Batches of {o.batch} signals of {o.seconds} s at
{RATE // 1000} kHz that lie on the GPU. Microseconds per batch by the clock, medians of {o.rounds} rounds in which the
libraries take turns; "on the GPU" is what penstock's stages take there while nothing else runs, "of a copy" the speed
at which bytes of inputs and outputs alone are moved in that time, as a share of that of a large plain copy; what lies
between operators is not counted. `python bench/audio_gpu.py`

| | DALI | torchaudio | penstock | on the GPU | of a copy | of DALI | of torchaudio |
|---|---|---|---|---|---|---|---|
{chr(10).join(rows)}
{left_out}
"""


if __name__ == "__main__":
    sys.exit(main())
