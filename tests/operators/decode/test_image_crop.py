# SPDX-License-Identifier: Apache-2.0
import math

import numpy as np

from encoded_images import decoded, encode, jpegs, mixed, photograph
from harness import op_test, per_sample
from penstock import types


def files(rng, case):
    return [f for f in jpegs() + mixed() if f.size != jpegs()[1].size]


def reference(
    x, crop=None, crop_h=0, crop_w=0, crop_pos_x=0.5, crop_pos_y=0.5, rounding="round", output_type=0, dtype=0, **kwargs
):
    image = decoded(x, output_type, dtype, **kwargs)
    sizes = (crop_h, crop_w) if crop is None else crop
    window = []
    for n, size, position in zip(image.shape, sizes, (crop_pos_y, crop_pos_x)):
        size = int(size) if int(size) > 0 else n
        place = float(np.float32(position)) * (n - size)
        begin = math.floor(place + 0.5) if rounding == "round" else math.floor(place)
        window.append(slice(begin, begin + size))
    return np.ascontiguousarray(image[tuple(window)])


TestImageCrop = op_test(
    "decoders.image_crop",
    reference,
    layouts=("",),
    args=[
        {},
        {"crop": [16, 20]},
        {"crop": [0, 17]},
        {"crop": [15.9, 20.2], "rounding": "truncate"},
        {"crop_h": 11.0, "crop_w": 20.0, "crop_pos_x": 1.0, "crop_pos_y": 0.0},
        {"crop": [16, 15], "crop_pos_x": per_sample(0, 1), "crop_pos_y": per_sample(0, 1)},
        {"crop": per_sample(5, 20, (2,)), "output_type": types.GRAY},
        {"crop": [16, 20], "dtype": types.FLOAT, "output_type": types.YCbCr},
        {"crop": [16, 20], "adjust_orientation": False},
    ],
    make_input=files,
    steps=1,
    dali_steps=1,
    atol=1.01 / 255,  # colour differences are rounded as integers
    share=0.02,
    errors=[
        ({"crop": [200, 20]}, RuntimeError, r"the window \[.*\] \(height, width\) is not inside the image of 67 x 45"),
        ({"crop": [5, 5], "crop_pos_x": 1.5}, RuntimeError, r"crop_pos_x is 1.5; it must be in \[0.0, 1.0\]"),
        ({"crop": [5, 5], "crop_h": 5.0}, ValueError, "either as `crop` or as `crop_h` and `crop_w`"),
        ({"crop_h": 5.0}, ValueError, "must be given together"),
        ({"crop": [5]}, ValueError, "`crop` takes"),
        ({"crop": per_sample(3, 5, (1,))}, RuntimeError, "`crop` takes 2 or 3 values per sample, got 1"),
        ({"crop": [5, np.inf]}, RuntimeError, r"the size of the window is \[5.0, inf\]"),
        ({"crop": [5, 1e30]}, RuntimeError, "is not inside the image of 67 x 45"),
        ({"rounding": "floor"}, ValueError, "supported: round, truncate"),
    ],
)


def test_one_pixel():
    assert reference(encode(photograph(1, 3, 3), "PNG"), crop=(1, 1)).shape == (1, 1, 3)
