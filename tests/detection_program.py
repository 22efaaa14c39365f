# SPDX-License-Identifier: Apache-2.0
"""examples/ssd.py on artificial images with visible boxes: white rectangles on black. For penstock and for DALI."""

import io
import types
from pathlib import Path

import numpy as np
from PIL import Image

EXAMPLE = Path(__file__).parents[1] / "examples" / "ssd.py"
SIDE = 96
ANCHORS = np.array(
    [
        (x - w / 2, y - h / 2, x + w / 2, y + h / 2)
        for x in np.arange(0.1, 1, 0.2)
        for y in np.arange(0.1, 1, 0.2)
        for w, h in ((0.2, 0.2), (0.5, 0.4), (0.3, 0.8))
    ],
    "f4",
).clip(0, 1)


def example(package="penstock"):
    """The example's namespace, with `package` instead of penstock."""
    module = types.ModuleType("ssd_example")
    module.__file__ = str(EXAMPLE)
    text = (
        EXAMPLE.read_text()
        .replace("import penstock.", f"import {package}.")
        .replace("from penstock", f"from {package}")
    )
    exec(compile(text, str(EXAMPLE), "exec"), module.__dict__)
    return module


def rectangles(sample):
    """An encoded picture, its boxes and labels: one rectangle in some of the cells of a 3 by 3 grid."""
    rng = np.random.default_rng(sample.idx_in_epoch)
    h, w = rng.integers(150, 320, 2)
    image, boxes, labels = np.zeros((h, w, 3), "u1"), [], []
    for cell in rng.permutation(9)[: rng.integers(1, 6)]:
        top, left = (np.array(divmod(cell, 3)) * (h // 3, w // 3) + rng.integers(8, 14, 2)).tolist()
        bottom, right = top + int(rng.integers(20, h // 3 - 20)), left + int(rng.integers(20, w // 3 - 20))
        image[top:bottom, left:right] = 255
        boxes.append((left / w, top / h, right / w, bottom / h))
        labels.append(cell + 1)
    file = io.BytesIO()
    Image.fromarray(image).save(file, "png")
    return np.frombuffer(file.getvalue(), "u1"), np.float32(boxes), np.int32(labels)


def samples(batches):
    """The five outputs of each sample."""
    for batch in batches:
        batch = [b.as_cpu() for b in batch]
        for i in range(len(batch[0])):
            yield [np.asarray(b.at(i)) for b in batch]


def check_boxes(image, boxes, labels, margin=2.5):
    """Checks that images are white inside each box and black just outside."""
    assert len(boxes) == len(labels) and boxes.shape[1:] == (4,) and (boxes >= 0).all() and (boxes <= 1).all()
    assert len(set(labels.tolist())) == len(labels)
    white = image.mean(axis=0) > (image.max() + image.min()) / 2
    for left, top, right, bottom in boxes * SIDE:
        inner = [int(np.ceil(v)) for v in (left + margin, top + margin, right - margin, bottom - margin)]
        inside = white[inner[1] : inner[3], inner[0] : inner[2]]
        assert inside.all(), "a box holds what is no part of the rectangle"
        outer = [int(np.floor(v)) for v in (left - margin, top - margin, right + margin, bottom + margin)]
        y0, y1 = max(inner[1], 0), min(inner[3], SIDE)
        x0, x1 = max(inner[0], 0), min(inner[2], SIDE)
        for line in (
            white[outer[1], x0:x1] if outer[1] >= 0 else white[:0],
            white[outer[3], x0:x1] if outer[3] < SIDE else white[:0],
            white[y0:y1, outer[0]] if outer[0] >= 0 else white[:0],
            white[y0:y1, outer[2]] if outer[2] < SIDE else white[:0],
        ):
            assert not line.any(), "a rectangle reaches out of its box"


def overlaps(a, b):
    """Intersections over unions (n, m)."""
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    both = np.prod(np.maximum(high - low, 0), axis=-1)
    area = lambda x: np.prod(x[:, 2:] - x[:, :2], axis=1)  # noqa: E731
    return both / (area(a)[:, None] + area(b)[None] - both)


def check_targets(boxes, labels, offsets, classes):
    """Checks that decoded matches are boxes with the right label, that anchors match overlapping boxes, and that each
    box is matched."""
    x, y, w, h = np.stack([*(ANCHORS[:, :2] + ANCHORS[:, 2:]).T / 2, *(ANCHORS[:, 2:] - ANCHORS[:, :2]).T])
    dx, dy, dw, dh = (offsets * np.float32([0.1, 0.1, 0.2, 0.2])).T
    centre, extent = np.stack([x + dx * w, y + dy * h], 1), np.stack([w * np.exp(dw), h * np.exp(dh)], 1)
    decoded = np.concatenate([centre - extent / 2, centre + extent / 2], 1)
    assert (offsets[classes == 0] == 0).all() and set(classes[classes > 0].tolist()) == set(labels.tolist())
    for found, box in zip(classes[classes > 0], decoded[classes > 0]):
        np.testing.assert_allclose(box, boxes[labels == found][0], atol=1e-4)
    share = overlaps(ANCHORS, boxes)
    assert ((classes > 0) >= (share > 0.5 + 1e-5).any(axis=1)).all()
