# SPDX-License-Identifier: Apache-2.0
"""Makes docs/images/auto_aug.jpg: each augmentation of TrivialAugment at two thirds of its range, then what AutoAugment
and RandAugment draw.

    python tools/augmentation_pictures.py [OUT]

Needs Pillow.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

from penstock import fn, pipeline_def
from penstock.auto_aug import auto_augment, rand_augment, trivial_augment
from penstock.auto_aug.core import signed_bin

ROOT = Path(__file__).parents[1]
PHOTOS = [str(ROOT / "examples" / "data" / p) for p in ("animals/raccoon.jpg", "places/palace.jpg")]
SIDE, GAP, TEXT, COLUMNS, BINS = 128, 6, 14, 7, 31


def photograph(path, n):
    jpegs, _ = fn.readers.file(files=[path] * n)
    return fn.resize(fn.decoders.image(jpegs), size=[SIDE, SIDE], mode="not_smaller")


@pipeline_def(num_threads=2, seed=4, enable_conditionals=True)
def each(suite):
    x = fn.crop(photograph(PHOTOS[0], 1), crop=(SIDE, SIDE))
    bins = signed_bin(2 * BINS // 3, random_sign=fn.random.uniform(values=[1], dtype=np.int32))
    return tuple(aug(x, magnitude_bin=bins, num_magnitude_bins=BINS) for aug in suite)


@pipeline_def(num_threads=2, seed=7)
def drawn(way):
    x = fn.crop(photograph(PHOTOS[1], COLUMNS), crop=(SIDE, SIDE))
    return {
        "AutoAugment": lambda: auto_augment.auto_augment(x, shape=[SIDE, SIDE], max_translate_rel=0.4),
        "RandAugment, n=2, m=15": lambda: rand_augment.rand_augment(x, n=2, m=15, shape=[SIDE, SIDE]),
    }[way]()


def sheet(rows):
    """Rows of (text, picture)."""
    height = SIDE + TEXT + GAP
    out = Image.new("RGB", (COLUMNS * (SIDE + GAP) + GAP, len(rows) * height + GAP), "white")
    draw = ImageDraw.Draw(out)
    for i, row in enumerate(rows):
        for j, (text, picture) in enumerate(row):
            x, y = GAP + j * (SIDE + GAP), GAP + i * height
            draw.text((x, y), text, fill="black")
            out.paste(Image.fromarray(picture), (x, y + TEXT))
    return out


def main():
    suite = trivial_augment.get_trivial_augment_wide_suite()
    tiles = [(aug.name, np.array(o.at(0))) for aug, o in zip(suite, each(suite, batch_size=1).run())]
    rows = [tiles[:COLUMNS], tiles[COLUMNS:]]
    for way in ("AutoAugment", "RandAugment, n=2, m=15"):
        (out,) = drawn(way, batch_size=COLUMNS).run()
        rows.append([(way if not i else "", np.array(out.at(i))) for i in range(COLUMNS)])
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images" / "auto_aug.jpg"
    sheet(rows).save(path, quality=85)


if __name__ == "__main__":
    main()
