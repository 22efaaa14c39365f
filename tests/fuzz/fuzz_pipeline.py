# SPDX-License-Identifier: Apache-2.0
"""Runs pipelines on folders of damaged pictures under AddressSanitizer; part of `make fuzz`.

fuzz_decode.py tries the decoders alone, and faster; here it is readers, threads, region decode and skipped samples.

Each batch holds mutations of real files, a function of its number: `--first N --batches 1`
repeats batch N. The batches run in a child process; a crash or a hang of it is reported with the number of the batch,
whose files are kept in build/fuzz/pipeline.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / "build" / "fuzz" / "pipeline"
BATCH = 32
HANG_S = 120
LARGEST_SEED = 300_000  # bytes; larger files only slow the search down


def seeds() -> list[Path]:
    folders = [ROOT / "examples" / "data"]
    if os.environ.get("PENSTOCK_DATA"):
        folders.append(Path(os.environ["PENSTOCK_DATA"]) / "formats")
    kinds = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp", ".jp2", ".pnm", ".ppm", ".pgm"}
    files = sorted(f for d in folders for f in d.rglob("*") if f.suffix.lower() in kinds)
    return [f for f in files if f.stat().st_size <= LARGEST_SEED]


def mutate(data: bytes, other: bytes, rng: np.random.Generator) -> bytes:
    out = np.frombuffer(data, np.uint8).copy()
    header = min(len(out), 512)
    for _ in range(rng.integers(1, 4)):
        kind = rng.integers(7)
        if kind == 0:  # bits anywhere
            at = rng.integers(0, len(out), rng.integers(1, 20))
            out[at] ^= (1 << rng.integers(0, 8, len(at))).astype(np.uint8)
        elif kind == 1:  # bytes of the header, where the sizes are
            at = rng.integers(0, min(header, len(out)), rng.integers(1, 6))
            out[at] = rng.choice(np.array([0, 1, 0x7F, 0x80, 0xFE, 0xFF], np.uint8), len(at))
        elif kind == 2:  # a 16-bit or 32-bit field at an extreme
            at, n = rng.integers(0, min(header, len(out))), rng.choice([2, 4])
            out[at : at + n] = rng.choice([0, 0xFF])
        elif kind == 3:  # cut off
            out = out[: max(1, rng.integers(1, len(out) + 1))]
        elif kind == 4:  # a piece of another file
            n = rng.integers(1, min(200, len(other)) + 1)
            start, at = rng.integers(0, len(other) - n + 1), rng.integers(0, len(out))
            piece = np.frombuffer(other, np.uint8)[start : start + n][: len(out) - at]
            out[at : at + len(piece)] = piece
        elif kind == 5:  # a piece twice
            a, b = sorted(rng.integers(0, len(out) + 1, 2))
            out = np.concatenate([out[:b], out[a : min(b, a + 4096)], out[b:]])
        else:  # a piece missing
            a = rng.integers(0, len(out))
            out = np.concatenate([out[:a], out[a + rng.integers(1, 200) :]])
        if len(out) == 0:
            return b""
    return out.tobytes()


def write_batch(number: int, files: list[Path]) -> list[str]:
    rng = np.random.default_rng(number)
    paths = []
    for i in range(BATCH):
        seed, other = (files[k] for k in rng.integers(0, len(files), 2))
        path = WORK / f"{i:02}{seed.suffix}"
        path.write_bytes(mutate(seed.read_bytes(), other.read_bytes(), rng))
        paths.append(str(path))
    return paths


def child(first: int, batches: int) -> None:
    """Decodes batch after batch; the parent reads from standard output how far it came."""
    import penstock.fn as fn
    from penstock import pipeline_def

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, on_error="skip", seed=1)
    def decode(files, how):
        data, _ = fn.readers.file(files=files)
        if how == 0:
            return fn.decoders.image(data)
        if how == 1:
            return fn.random_resized_crop(fn.decoders.image(data), size=64)
        if how == 2:
            return fn.decoders.image_crop(data, crop=(96, 96))
        return fn.peek_image_shape(data)

    files = seeds()
    for number in range(first, first + batches):
        paths = write_batch(number, files)
        bad = 0
        for how in range(4):
            pipe = decode(paths, how)
            try:
                pipe.run()
            except (RuntimeError, StopIteration):  # not one picture of the batch was readable
                pass
            bad += len(pipe.errors())
            pipe.close()
        print(number, bad, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=180)
    parser.add_argument("--first", type=int, default=int(time.time()), help="number of the first batch")
    parser.add_argument("--batches", type=int, default=10**9)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    a = parser.parse_args()
    WORK.mkdir(parents=True, exist_ok=True)
    if a.child:
        child(a.first, a.batches)
        return
    print(f"fuzzing for {a.seconds:g} s from {len(seeds())} files, first batch {a.first}")
    command = [sys.executable, __file__, "--child", "--first", str(a.first), "--batches", str(a.batches)]
    end, started, done, bad = time.time() + a.seconds, time.time(), 0, 0
    log = WORK / "child.log"
    with (
        open(log, "w") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        os.set_blocking(process.stdout.fileno(), False)
        last = time.time()
        while time.time() < end and process.poll() is None:
            time.sleep(0.2)
            for line in process.stdout:
                last, done, bad = time.time(), done + 1, bad + int(line.split()[1])
            if sys.stderr.isatty():
                rate = 4 * BATCH * done / (time.time() - started)
                text = (
                    f"{done} batches, {bad} bad samples, {rate:.0f} pictures/s, {max(0, end - time.time()):.0f} s left"
                )
                print(f"\r  {text}  ", end="", file=sys.stderr, flush=True)
            if time.time() - last > HANG_S:
                process.kill()
                sys.exit(f"\nbatch {a.first + done} has been running for {HANG_S} s; its files are in {WORK}")
        finished = process.poll()
        process.kill()
    if finished:
        print(log.read_text()[-6000:], file=sys.stderr)
        sys.exit(f"batch {a.first + done} ended with status {finished}; its files are in {WORK}, the report in {log}")
    print(f"\n{4 * BATCH * done} damaged pictures in {done} batches, {bad} refused, nothing found")


if __name__ == "__main__":
    main()
