# SPDX-License-Identifier: Apache-2.0
"""Handwritten digits as files, for the examples that train on them, and the pipelines that read them.

The 1,797 images of 8x8 pixels are those of scikit-learn (UCI, Alpaydin and Kaynak), written as PNG files in one folder
per class. Every fifth image is for validation. MixUp and CutMix mix the images of a batch.
"""

from pathlib import Path

import penstock.fn as fn
import penstock.types as types
from penstock import math, pipeline_def

CLASSES = 10
SIZE = 16


def write(folder):
    from PIL import Image
    from sklearn.datasets import load_digits

    digits = load_digits()
    for i, (pixels, label) in enumerate(zip(digits.images, digits.target)):
        path = Path(folder) / ("val" if i % 5 == 0 else "train") / str(label) / f"{i:04}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray((pixels * 15.9).astype("uint8")).save(path)  # values are 0 to 16


def mixup(images, targets, alpha=0.2):
    """Replaces each image by a weighted sum with another one of its batch, and its target in the same way."""
    share, other = fn.random.beta(alpha=alpha, beta=alpha), fn.batch_permutation()
    images = images * share + fn.permute_batch(images, indices=other) * (1 - share)
    return images, targets * share + fn.permute_batch(targets, indices=other) * (1 - share)


def cutmix(images, targets, size=SIZE):
    """Pastes a square of another image of the batch into each image; its target is weighted by its share of the
    area."""
    other = fn.batch_permutation()
    side = size * math.sqrt(1 - fn.random.beta(alpha=1.0, beta=1.0))
    corner = fn.random.uniform(range=(0, size), shape=[2]) - side / 2
    own = fn.erase(fn.ones_like(images), anchor=corner, shape=fn.stack(side, side), axis_names="HW")
    share = fn.reductions.mean(own)
    images = images * own + fn.permute_batch(images, indices=other) * (1 - own)
    return images, targets * share + fn.permute_batch(targets, indices=other) * (1 - share)


@pipeline_def
def pipeline(folder, training=False, mix=None, layout="CHW", decoder="cpu", shard_id=0, num_shards=1):
    """Returns images as floats, and one share for each class."""
    files, labels = fn.readers.file(
        file_root=folder, random_shuffle=training, shard_id=shard_id, num_shards=num_shards, name="reader"
    )
    images = fn.resize(fn.decoders.image(files, device=decoder), size=[SIZE, SIZE])
    if training:
        images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True, fill_value=0)
    images = fn.crop_mirror_normalize(images, mean=[128.0] * 3, std=[64.0] * 3, dtype=types.FLOAT, output_layout="HWC")
    targets = fn.one_hot(labels.gpu() if decoder == "mixed" else labels, num_classes=CLASSES)
    targets = fn.reshape(targets, shape=[CLASSES])
    if mix is not None:
        images, targets = mix(images, targets)
    return fn.transpose(images, perm=[2, 0, 1]) if layout == "CHW" else images, targets
