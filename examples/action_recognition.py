# SPDX-License-Identifier: Apache-2.0
"""Trains a small network to recognise actions in videos: clips of 16 frames, resized, cropped at random and normalised.

    python examples/action_recognition.py [--videos FOLDER] [--epochs N] [--batch N] [--threads N]

FOLDER has a sub-folder of videos for each action. Without it, videos of a square that moves in one of four directions
are created (which requires PyAV: `pip install penstock[video]`). Prints the loss and the accuracy of each epoch.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import torch

import penstock.fn as fn
import penstock.types as types
from penstock import pipeline_def
from penstock.plugin.pytorch import DALIClassificationIterator

FRAMES, SIDE = 16, 32
ACTIONS = {"down": (1, 0), "left": (0, -1), "right": (0, 1), "up": (-1, 0)}


def make_videos(root: Path, videos: int = 12, frames: int = 24) -> None:
    """Writes videos of a square that moves in the direction named by the folder."""
    import av

    rng = np.random.default_rng(0)
    for action, (down, right) in ACTIONS.items():
        (root / action).mkdir(parents=True)
        for k in range(videos):
            with av.open(str(root / action / f"{k}.mp4"), "w") as file:
                stream = file.add_stream("mpeg4", rate=12)
                stream.height, stream.width, stream.pix_fmt = 48, 64, "yuv420p"
                y, x, colour = rng.integers(8, 32), rng.integers(8, 48), rng.integers(100, 256, 3)
                for i in range(frames):
                    picture = np.full((48, 64, 3), 20, np.uint8)
                    rows = (y + 2 * i * down + np.arange(10)) % 48
                    picture[rows[:, None], (x + 2 * i * right + np.arange(10)) % 64] = colour
                    file.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
                file.mux(stream.encode())


@pipeline_def
def clips(root):
    """Returns normalised clips (3, FRAMES, SIDE, SIDE), float32, and the indices of the actions."""
    frames, label = fn.readers.video_resize(
        name="videos",
        file_root=root,
        sequence_length=FRAMES,
        step=4,
        resize_shorter=SIDE + 4,
        random_shuffle=True,
        pad_last_batch=True,
    )
    frames = fn.crop_mirror_normalize(
        frames,
        crop=(SIDE, SIDE),
        crop_pos_x=fn.random.uniform(range=(0, 1)),
        crop_pos_y=fn.random.uniform(range=(0, 1)),
        dtype=types.FLOAT,
        output_layout="CFHW",
        mean=[128.0] * 3,
        std=[64.0] * 3,
    )
    return frames, label


def network(actions):
    layers, channels = [], 3
    for wider in (16, 32, 64):
        layers += [
            torch.nn.Conv3d(channels, wider, 3, stride=2, padding=1),
            torch.nn.BatchNorm3d(wider),
            torch.nn.ReLU(),
        ]
        channels = wider
    return torch.nn.Sequential(*layers, torch.nn.AdaptiveAvgPool3d(1), torch.nn.Flatten(), torch.nn.Linear(64, actions))


def train(root, epochs, batch, threads):
    """Returns the accuracy of the last epoch."""
    torch.manual_seed(0)
    pipe = clips(str(root), batch_size=batch, num_threads=threads, seed=1)
    loader = DALIClassificationIterator(pipe, reader_name="videos")
    model = network(sum(p.is_dir() for p in Path(root).iterdir()))
    optimiser = torch.optim.AdamW(model.parameters(), 3e-3)
    for epoch in range(epochs):
        right = seen = total = 0.0
        for (sample,) in loader:
            frames, label = sample["data"], sample["label"].squeeze(-1).long()
            scores = model(frames)
            loss = torch.nn.functional.cross_entropy(scores, label)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            right += (scores.argmax(1) == label).sum().item()
            seen, total = seen + len(label), total + loss.item() * len(label)
        print(f"epoch {epoch}: {int(seen)} clips, loss {total / seen:.3f}, accuracy {right / seen:.2f}", flush=True)
    return right / seen


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--videos", default="", help="folder with a sub-folder of videos for each action")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = Path(args.videos or folder)
        if not args.videos:
            make_videos(root)
        train(root, args.epochs, args.batch, args.threads)


if __name__ == "__main__":
    main()
