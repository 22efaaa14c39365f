# SPDX-License-Identifier: Apache-2.0
"""The main use on a folder of photographs: read, decode, augment, normalise; the result is NumPy arrays.

    python examples/demo.py [--data FOLDER] [--batches N] [--threads N] [--explain] [--out FILE.png]

Prints the speed and where the time was spent, and writes a contact sheet: each row has a photograph as used for
validation, then as used for training in the next epochs.
"""

import argparse
import struct
import sys
import time
import zlib
from pathlib import Path

import numpy as np

import penstock.fn as fn
import penstock.types as types
from penstock import pipeline_def

HERE = Path(__file__).resolve().parent
MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])  # ImageNet's, of values in [0, 255]
SIDE_PX = 224
ROWS = ("cat.jpg", "raccoon.jpg", "astronaut.jpg", "palace.jpg", "flower.jpg")
EPOCHS_SHOWN = 8


@pipeline_def(seed=42)
def training(root, shuffle=True):
    jpegs, labels = fn.readers.file(file_root=str(root), random_shuffle=shuffle, name="reader")
    images = fn.decoders.image(jpegs)
    images = fn.random_resized_crop(images, size=SIDE_PX, random_area=(0.2, 1.0))
    images = fn.color_twist(
        images,
        brightness=fn.random.uniform(range=(0.8, 1.2)),
        saturation=fn.random.uniform(range=(0.6, 1.4)),
        hue=fn.random.uniform(range=(-12.0, 12.0)),
    )
    mirror = fn.random.coin_flip()
    return fn.crop_mirror_normalize(images, mirror=mirror, dtype=types.FLOAT, mean=MEAN, std=STD), labels


@pipeline_def
def validation(root):
    jpegs, labels = fn.readers.file(file_root=str(root), name="reader")
    images = fn.resize(fn.decoders.image(jpegs), resize_shorter=256)
    return fn.crop_mirror_normalize(images, crop=(SIDE_PX, SIDE_PX), dtype=types.FLOAT, mean=MEAN, std=STD), labels


def pictures(batch) -> np.ndarray:
    """Converts a batch of normalised floats (NCHW) back to images, uint8 (NHWC)."""
    values = np.asarray(batch.as_tensor()).transpose(0, 2, 3, 1) * STD + MEAN
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)


def contact_sheet(rows: np.ndarray, gap: int = 6) -> np.ndarray:
    """Arranges images (rows, columns, H, W, 3) on white, at half their size; the first column is set apart."""
    n_rows, n_columns, h, w, _ = rows.shape
    rows = rows.reshape(n_rows, n_columns, h // 2, 2, w // 2, 2, 3).mean((3, 5))
    h, w = h // 2, w // 2
    sheet = np.full((n_rows * (h + gap) + gap, n_columns * (w + gap) + 3 * gap, 3), 255, np.uint8)
    for i in range(n_rows):
        for j in range(n_columns):
            top, left = gap + i * (h + gap), gap + j * (w + gap) + (2 * gap if j else 0)
            sheet[top : top + h, left : left + w] = rows[i, j]
    return sheet


def write_png(path: Path, image: np.ndarray) -> None:
    """Encodes an RGB image (HWC, uint8) as PNG, with the standard library only."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    h, w, _ = image.shape
    lines = np.zeros((h, 1 + 3 * w), np.uint8)
    lines[:, 0] = 1  # each line as differences to the pixel on the left
    pixels = image.reshape(h, w, 3)
    lines[:, 1:4] = pixels[:, 0]
    lines[:, 4:] = (pixels[:, 1:] - pixels[:, :-1]).reshape(h, -1)
    header = struct.pack(">IIBBBBB", w, h, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(lines.tobytes(), 6)) + chunk(b"IEND", b"")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + body)


def progress(steps: range, per_step: int):
    """Yields the steps with a progress bar that shows the rate; silent if the output is not a terminal."""
    started = time.perf_counter()
    for done, step in enumerate(steps, 1):
        yield step
        if sys.stderr.isatty():
            filled = 30 * done // len(steps)
            rate = done * per_step / (time.perf_counter() - started)
            bar = "#" * filled + "-" * (30 - filled)
            print(f"\r  [{bar}] {done}/{len(steps)} batches, {rate:.0f} images/s ", end="", file=sys.stderr)
    if sys.stderr.isatty():
        print(file=sys.stderr)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data", help="a folder with one folder of images per class")
    parser.add_argument("--batches", type=int, default=100)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--threads", type=int, default=None, help="default: one per CPU")
    parser.add_argument("--explain", action="store_true", help="also print the plan")
    parser.add_argument("--out", type=Path, default=HERE.parent / "build" / "demo" / "contact_sheet.png")
    a = parser.parse_args()

    pipe = training(a.data, batch_size=a.batch_size, num_threads=a.threads)
    n = pipe.epoch_size("reader")
    print(f"{n} photographs in {a.data}: read, decode, random_resized_crop {SIDE_PX}, color_twist, mirror, normalise")
    if a.explain:
        print(pipe.explain(), end="\n\n")
    pipe.run()  # the first batch also starts the threads
    pipe.reset_stats()
    for _ in progress(range(a.batches), a.batch_size):
        pipe.run()
    print(pipe.stats(), end="\n\n")

    every = {"batch_size": n, "num_threads": a.threads}
    seen = training(a.data, shuffle=False, **every)
    columns = [pictures(validation(a.data, **every).run()[0])]
    columns += [pictures(seen.run()[0]) for _ in range(EPOCHS_SHOWN)]
    names = sorted(p.relative_to(a.data) for p in a.data.glob("*/*.jpg"))
    shown = [i for i, name in enumerate(names) if name.name in ROWS] or list(range(min(n, len(ROWS))))
    write_png(a.out, contact_sheet(np.stack(columns, 1)[shown]))
    print(f"contact sheet: {a.out}")


if __name__ == "__main__":
    main()
