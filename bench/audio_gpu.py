# SPDX-License-Identifier: Apache-2.0
"""Audio operators on the GPU against DALI's: log-mel features and each operator, in one process.

    python bench/audio_gpu.py [--batch 256] [--seconds 15] [--limit 90] [--only NAME...]

Signals are made here, at 16 kHz, and lie in the GPU's memory before they are timed. The libraries run one after the
other; the best of some rounds counts. What one of them can't do is said. The report is written after each case, and
after `--limit` seconds no further case begins. Needs neither PyTorch nor CuPy.
"""

from __future__ import annotations

import argparse
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
WARM_UP, ROUNDS = 12, 3


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
    "mel_filter_bank": ("spectrum", "ft", lambda fn, x: fn.mel_filter_bank(x, sample_rate=16000.0, nfilter=80)),
    "to_decibels": ("spectrum", "ft", lambda fn, x: fn.to_decibels(x)),
    "mfcc": ("mel", "ft", lambda fn, x: fn.mfcc(x)),
    "preemphasis_filter": ("signal", "t", lambda fn, x: fn.preemphasis_filter(x)),
    "nonsilent_region": ("signal", "t", lambda fn, x: fn.nonsilent_region(x)),
    "audio_resample, 16 to 22.05 kHz": (
        "signal",
        "t",
        lambda fn, x: fn.audio_resample(x, in_rate=16000.0, out_rate=22050.0),
    ),
    "power_spectrum, nfft=262144": ("signal", "t", lambda fn, x: fn.power_spectrum(x, nfft=1 << 18)),
}


def inputs(batch: int, seconds: int) -> dict[str, list[np.ndarray]]:
    rng = np.random.default_rng(1)
    frames = seconds * 100 + 1
    shapes = {"signal": (seconds * RATE,), "spectrum": (257, frames), "mel": (80, frames)}
    return {k: [rng.random(s, "f4") for _ in range(batch)] for k, s in shapes.items()}


def build(library: str, data: list[np.ndarray], layout: str, define: Callable) -> Any:
    """A pipeline whose input was copied to the GPU once, by another pipeline of the same library."""
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

    @pipeline_def(batch_size=len(data), num_threads=4, device_id=0, seed=1, prefetch_queue_depth=2)
    def pipe():
        x = fn.external_source(source=lambda i: lying, layout=layout, no_copy=True, device="gpu")
        out = define(fn, x)
        return tuple(out) if isinstance(out, (list, tuple)) else out

    pipe = pipe()
    pipe.build()
    for _ in range(WARM_UP):
        pipe.run()
    pipe.kept_alive = copier  # whose output `lying` is
    return pipe


def time_of(pipe: Any, wait: Callable[[], None]) -> float:
    """Seconds per batch."""
    wait()
    begin, n = time.perf_counter(), 0
    while time.perf_counter() - begin < 0.2 or n < 8:
        pipe.run()
        n += 1
    wait()
    return (time.perf_counter() - begin) / n


def main() -> int:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--batch", type=int, default=256)
    p.add_argument("--seconds", type=int, default=15, help="length of the signals")
    p.add_argument("--limit", type=float, default=90, help="seconds after which no further case begins")
    p.add_argument("--only", nargs="*", default=[], help="parts of the names of cases")
    p.add_argument("--output", default="")
    o = p.parse_args()
    begin = time.monotonic()
    data, wait, rows, notes = inputs(o.batch, o.seconds), gpu_time.synchronize(), [], []
    for name, (kind, layout, define) in CASES.items():
        if o.only and not any(part in name for part in o.only):
            continue
        if time.monotonic() - begin > o.limit:
            notes.append(f"{name}: not measured, as the time was over")
            continue
        times: dict[str, float] = {}
        device, share = float("nan"), float("nan")
        for library in ("DALI", "penstock"):  # one after the other: both take much memory
            try:
                pipe = build(library, data[kind], layout, define)
                times[library] = min(time_of(pipe, wait) for _ in range(ROUNDS)) * 1e6
                if library == "penstock":
                    device = gpu_time.of_a_batch(pipe)
                    moved = sum(x.nbytes for x in data[kind]) + gpu_time.bytes_of_outputs(pipe.run())
                    share = moved / device / gpu_time.peak_speed(pipe._plan.session.device) if device else share
                del pipe
            except Exception as e:
                notes.append(f"{name}: {library} can't do it: {' '.join(str(e).split())[:300]}")
                print(notes[-1], file=sys.stderr)
        theirs, ours = (times.get(library, float("nan")) for library in ("DALI", "penstock"))
        rows.append(f"| {name} | {theirs:,.0f} | {ours:,.0f} | {device:,.0f} | {share:.0%} | {theirs / ours:.2f} x |")
        print(rows[-1], flush=True)
        if not o.only:
            measure.write(o.output, "audio_gpu.md", report(o, rows, notes))
    return 0


def report(o: argparse.Namespace, rows: list[str], notes: list[str]) -> str:
    left_out = "".join(f"\n* {note}" for note in notes)
    return f"""# Audio on the GPU

{measure.machine()}; {measure.versions("nvidia-dali-cuda130", "numpy")}. Batches of {o.batch} signals of
{o.seconds} s at {RATE // 1000} kHz that lie on the GPU. Microseconds per batch by the clock; "on the GPU" is what
penstock's stages take there, "of memory" which part of the memory's speed (its clock times its width) the bytes of
inputs and outputs alone come to in that time; what lies between operators is not counted.
`python bench/audio_gpu.py`

| | DALI | penstock | on the GPU | of memory | ratio |
|---|---|---|---|---|---|
{chr(10).join(rows)}
{left_out}
"""


if __name__ == "__main__":
    sys.exit(main())
