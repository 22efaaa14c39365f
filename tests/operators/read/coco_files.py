# SPDX-License-Identifier: Apache-2.0
"""A small data set in COCO's format: images of a few bytes, and objects with polygons or masks."""

import json

import numpy as np


def masks(rng, width, height):
    """A mask that alternates in every column, uncompressed and compressed."""
    runs, left = [], width * height
    while left:
        runs.append(min(left, int(rng.integers(0, 40))))
        left -= runs[-1]
    return runs


def pack(runs):
    """Encodes runs as text, as pycocotools does."""
    text = ""
    for i, run in enumerate(runs):
        value = run - runs[i - 2] if i > 2 else run
        while True:
            bits, value = value & 31, value >> 5
            more = value != (-1 if bits & 16 else 0)
            text += chr(48 + (bits | 32 * more))
            if not more:
                break
    return text


def write(root, n_images=20, n_objects=60, crowds=True, seed=0):
    """Writes images and a.json. Returns its content."""
    rng = np.random.default_rng(seed)
    images, objects = [], []
    for i in (rng.permutation(n_images) + 1).tolist():
        width, height = rng.integers(20, 90, 2).tolist()
        images.append({"id": i * 10, "file_name": f"{i}.jpg", "width": width, "height": height, "license": None})
        (root / f"{i}.jpg").write_bytes(b"picture %d" % i)
    for k in range(n_objects):
        image = images[int(rng.integers(0, n_images * 3 // 4))]
        width, height = image["width"], image["height"]
        crowd = crowds and k % 5 == 0
        if crowd:
            runs = masks(rng, width, height)
            segmentation = {"size": [height, width], "counts": pack(runs) if k % 2 else runs}
        else:
            polygons = range(int(rng.integers(1, 4)))
            segmentation = [rng.uniform(-5, 95, 2 * int(rng.integers(3, 9))).round(2).tolist() for _ in polygons]

        box = rng.uniform(0, 40, 4).round(2).tolist()
        objects.append({"id": k, "image_id": image["id"], "category_id": int(rng.choice([3, 7, 90])), "bbox": box})
        objects[-1] |= {"iscrowd": int(crowd), "segmentation": segmentation, "area": 1.5}
    categories = [{"id": i, "name": "x"} for i in (90, 3, 7)]
    everything = {"info": {"year": 2017}, "images": images, "annotations": objects, "categories": categories}
    (root / "a.json").write_text(json.dumps(everything))
    return everything
