# SPDX-License-Identifier: Apache-2.0
"""Training data for a detector (SSD): photographs and the boxes of their objects, cropped, flipped and coloured
together, and the boxes as targets of 8732 anchors.

    python examples/ssd.py [--batches N] [--threads N] [--out FILE.png]

Prints the number of anchors that match a box, and writes a sheet: each row has a photograph with its boxes as used for
training. The source is a Python function that returns encoded photographs, boxes and labels; replace it by your own.
"""

import argparse
from pathlib import Path

import numpy as np

import penstock.fn as fn
import penstock.types as types
from penstock import pipeline_def

HERE = Path(__file__).resolve().parent
MEAN, STD = np.array([123.675, 116.28, 103.53]), np.array([58.395, 57.12, 57.375])  # ImageNet's, of values in [0, 255]
SIDE_PX = 300
FACE, EYE, HELMET, ROCKET = 1, 2, 3, 4  # 0 is the background
# Per photograph of examples/data what is in it: the class, and left, top, right, bottom as shares of the image.
OBJECTS = {
    "animals/cat.jpg": [(FACE, 0.0, 0.0, 0.85, 0.95), (EYE, 0.3, 0.29, 0.46, 0.5), (EYE, 0.65, 0.36, 0.76, 0.55)],
    "animals/raccoon.jpg": [(FACE, 0.38, 0.05, 0.92, 0.63)],
    "people/astronaut.jpg": [
        (FACE, 0.33, 0.04, 0.58, 0.38),
        (HELMET, 0.54, 0.67, 1.0, 1.0),
        (ROCKET, 0.69, 0.0, 0.9, 0.57),
    ],
}


def photographs(sample):
    """Returns an encoded photograph, its boxes and their labels."""
    name, objects = list(OBJECTS.items())[sample.idx_in_epoch % len(OBJECTS)]
    boxes = np.array([box for _, *box in objects], np.float32)
    return np.fromfile(HERE / "data" / name, np.uint8), boxes, np.array([label for label, *_ in objects], np.int32)


def ssd_anchors(
    sizes=(38, 19, 10, 5, 3, 1),
    scales=(21, 45, 99, 153, 207, 261, 315),
    ratios=((2,), (2, 3), (2, 3), (2, 3), (2,), (2,)),
    side=300,
):
    """Returns the default boxes of SSD300 (Liu et al., 2016, section 2.2), (8732, 4) as left, top, right, bottom in [0,
    1]: for each cell of six grids one of the grid's scale, one between it and the next, and both orientations of each
    ratio."""
    anchors = []
    for n, scale, next_scale, wide in zip(sizes, scales, scales[1:], ratios):
        extents = [(scale, scale), (np.sqrt(scale * next_scale),) * 2]
        for r in wide:
            extents += [(scale * np.sqrt(r), scale / np.sqrt(r)), (scale / np.sqrt(r), scale * np.sqrt(r))]
        y, x = np.mgrid[:n, :n] / n + 0.5 / n
        for w, h in extents:
            anchors.append(np.stack([x, y, np.full_like(x, w / side), np.full_like(x, h / side)], axis=-1))
    x, y, w, h = np.clip(np.concatenate([a.reshape(-1, 4) for a in anchors]), 0, 1).T
    return np.clip(np.stack([x - w / 2, y - h / 2, x + w / 2, y + h / 2], axis=-1), 0, 1).astype(np.float32)


@pipeline_def(seed=42)
def training(source=photographs, anchors=None, side=SIDE_PX, colours=True, decoder="cpu"):
    encoded, boxes, labels = fn.external_source(source=source, num_outputs=3, batch=False)
    return augmented(encoded, boxes, labels, anchors, side, colours, decoder)


def augmented(encoded, boxes, labels, anchors=None, side=SIDE_PX, colours=True, decoder="cpu"):
    """Returns images (float, CHW), their boxes and labels, and the targets of the anchors: offsets and labels."""
    begin, size, boxes, labels = fn.random_bbox_crop(
        boxes,
        labels,
        aspect_ratio=[0.5, 2.0],
        thresholds=[0.0, 0.1, 0.3, 0.5, 0.7, 0.9],
        scaling=[0.3, 1.0],
        bbox_layout="xyXY",
        allow_no_crop=True,
        num_attempts=50,
    )
    images = fn.decoders.image(encoded, device=decoder, output_type=types.RGB)
    images = fn.slice(images, begin, size)  # decodes this part only
    mirror = fn.random.coin_flip(probability=0.5)
    images = fn.flip(images, horizontal=mirror)
    boxes = fn.bb_flip(boxes, ltrb=True, horizontal=mirror)
    images = fn.resize(images, size=[side, side])
    if colours:
        images = fn.hsv(
            images,
            hue=fn.random.uniform(range=(-18.0, 18.0)),
            saturation=fn.random.uniform(range=(0.5, 1.5)),
            dtype=types.FLOAT,
        )
        images = fn.brightness_contrast(
            images,
            brightness=fn.random.uniform(range=(0.875, 1.125)),
            contrast=fn.random.uniform(range=(0.5, 1.5)),
            contrast_center=128.0,
            dtype=types.UINT8,
        )
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mean=list(MEAN), std=list(STD))
    offsets, classes = fn.box_encoder(
        boxes,
        labels,
        anchors=(ssd_anchors() if anchors is None else anchors).flatten().tolist(),
        criteria=0.5,
        offset=True,
        scale=float(side),
        stds=[0.1, 0.1, 0.2, 0.2],
    )
    return images, boxes, labels, offsets, classes


def picture(image, boxes):
    """Converts a normalised image to uint8 (HWC), with frames around the boxes."""
    x = np.clip(np.rint(np.asarray(image).transpose(1, 2, 0) * STD + MEAN), 0, 255).astype(np.uint8)
    for left, top, right, bottom in np.rint(np.asarray(boxes) * (len(x) - 1)).astype(int):
        for d in (0, 1):
            x[[max(top - d, 0), min(bottom + d, len(x) - 1)], left : right + 1] = 255, 220, 0
            x[top : bottom + 1, [max(left - d, 0), min(right + d, len(x) - 1)]] = 255, 220, 0
    return x


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batches", type=int, default=6)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    args = parser.parse_args()
    n = len(OBJECTS)
    pipe = training(batch_size=n, num_threads=args.threads, device_id=None)
    pipe.build()
    columns = []
    for _ in range(args.batches):
        images, boxes, labels, _, classes = pipe.run()
        found = (classes.as_array() > 0).sum(axis=1)
        for i, name in enumerate(OBJECTS):
            print(f"{name:22} {len(boxes.at(i))} boxes of classes {labels.at(i).tolist()}, found by {found[i]} anchors")
        columns.append(np.concatenate([picture(images.at(i), boxes.at(i)) for i in range(n)]))
    if args.out:
        from demo import write_png

        write_png(args.out, np.concatenate(columns, axis=1))
        print(f"wrote {args.out}")


if __name__ == "__main__":
    main()
