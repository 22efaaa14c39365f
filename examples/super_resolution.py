# SPDX-License-Identifier: Apache-2.0
"""Trains a small network to double the size of videos, from three small frames to the large one in the middle.

    python examples/super_resolution.py [--videos FOLDER] [--epochs N] [--batch N] [--threads N]

The pipeline decodes sequences of three frames, crops them at random and creates the small ones that the network gets;
the network adds what cubic interpolation lacks (as in Shi et al., Real-Time Single Image and Video Super-Resolution,
2016). FOLDER has videos, or folders of them. Without it, videos of moving shapes are created (which requires PyAV:
`pip install penstock[video]`). Prints the loss of each epoch, and the peak signal-to-noise ratio next to that of cubic
interpolation.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import interpolate, mse_loss

import penstock.fn as fn
import penstock.types as types
from penstock import pipeline_def
from penstock.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

FRAMES, SIDE, FACTOR = 3, 48, 2
ENDINGS = (".mp4", ".mov", ".mkv", ".webm", ".avi")


def make_videos(root: Path, videos: int = 6, frames: int = 20) -> None:
    """Writes videos of stripes and discs that move."""
    import av

    rng = np.random.default_rng(0)
    y, x = np.mgrid[:72, :96]
    for k in range(videos):
        colours, angle, width = rng.integers(0, 256, (4, 3)), rng.uniform(0, np.pi), rng.uniform(4, 9)
        centre, speed = rng.uniform(20, 50, 2), rng.uniform(-1.5, 1.5, 3)
        with av.open(str(root / f"{k}.mp4"), "w") as file:
            stream = file.add_stream("mpeg4", rate=12, options={"qscale": "1"})
            stream.height, stream.width, stream.pix_fmt, stream.bit_rate = 72, 96, "yuv420p", 4_000_000
            for i in range(frames):
                stripes = np.floor((x * np.cos(angle) + y * np.sin(angle) + speed[2] * i) / width) % 2
                disc = np.hypot(y - centre[0] - speed[0] * i, x - centre[1] - speed[1] * i) < 14
                picture = colours[(stripes + 2 * disc).astype(int)].astype(np.uint8)
                file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
            file.mux(stream.encode())


@pipeline_def
def sequences(files):
    """Returns frames (FRAMES, 3, SIDE // FACTOR, SIDE // FACTOR) and large ones (FRAMES, 3, SIDE, SIDE), float32, 0 to
    1."""
    frames = fn.readers.video(
        name="videos", filenames=files, sequence_length=FRAMES, step=1, random_shuffle=True, initial_fill=64
    )
    place = {"crop_pos_x": fn.random.uniform(range=[0.0, 1.0]), "crop_pos_y": fn.random.uniform(range=[0.0, 1.0])}
    large = fn.crop(frames, crop=(SIDE, SIDE), **place)
    small = fn.resize(large, size=(SIDE // FACTOR, SIDE // FACTOR), interp_type=types.INTERP_CUBIC, antialias=True)
    scale = {"dtype": types.FLOAT, "output_layout": "FCHW", "std": [255.0] * 3}
    return fn.crop_mirror_normalize(small, **scale), fn.crop_mirror_normalize(large, **scale)


class Network(torch.nn.Module):
    def __init__(self, channels=32):
        super().__init__()
        last = torch.nn.Conv2d(channels, 3 * FACTOR**2, 3, padding=1)
        torch.nn.init.zeros_(last.weight)  # so that it begins with cubic interpolation
        torch.nn.init.zeros_(last.bias)
        self.layers = torch.nn.Sequential(
            torch.nn.Conv2d(3 * FRAMES, channels, 5, padding=2),
            torch.nn.ReLU(),
            torch.nn.Conv2d(channels, channels, 3, padding=1),
            torch.nn.ReLU(),
            last,
            torch.nn.PixelShuffle(FACTOR),
        )

    def forward(self, small):
        return enlarged(small) + self.layers(small.flatten(1, 2))


def enlarged(small):
    """Returns the frame in the middle, enlarged by cubic interpolation."""
    return interpolate(small[:, FRAMES // 2], scale_factor=FACTOR, mode="bicubic")


def decibels(error):
    return float(-10 * np.log10(error))


def train(files, epochs, batch, threads):
    """Returns the peak signal-to-noise ratios of the last epoch in dB: the network's, and that of cubic
    interpolation."""
    torch.manual_seed(0)
    pipe = sequences(files, batch_size=batch, num_threads=threads, seed=1)
    names = ["small", "large"]
    loader = DALIGenericIterator(pipe, names, reader_name="videos", last_batch_policy=LastBatchPolicy.PARTIAL)
    model = Network()
    optimiser = torch.optim.AdamW(model.parameters(), 1e-3)
    for epoch in range(epochs):
        error = cubic = seen = 0.0
        for (sample,) in loader:
            small, large = sample["small"], sample["large"][:, FRAMES // 2]
            loss = mse_loss(model(small), large)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            n = len(small)
            error, seen = error + loss.item() * n, seen + n
            cubic += mse_loss(enlarged(small), large).item() * n
        ours, theirs = decibels(error / seen), decibels(cubic / seen)
        print(
            f"epoch {epoch}: {int(seen)} sequences, loss {error / seen:.5f}, {ours:.2f} dB (cubic interpolation: "
            f"{theirs:.2f} dB)",
            flush=True,
        )
    return ours, theirs


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", default="", help="folder of videos")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(args.videos or folder)
        if not args.videos:
            make_videos(root)
        files = sorted(str(p) for p in root.rglob("*") if p.suffix.lower() in ENDINGS)
        train(files, args.epochs, args.batch, args.threads)


if __name__ == "__main__":
    main()
