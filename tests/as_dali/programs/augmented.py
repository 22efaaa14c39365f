# SPDX-License-Identifier: Apache-2.0
"""A training pipeline with automatic augmentation: `augmented.py FOLDER`. Predefined policies, a custom policy, and
custom augmentations together with predefined ones."""

import sys

import numpy as np
from nvidia.dali import fn, pipeline_def, types
from nvidia.dali.auto_aug import augmentations, auto_augment, rand_augment, trivial_augment
from nvidia.dali.auto_aug.core import Policy, augmentation, select, signed_bin


@augmentation(mag_range=(0, 64), randomly_negate=True, mag_to_param=lambda m: np.float32([m, 0, 0]))
def redder(data, color):
    return fn.cast_like(data + color, data)


@augmentation
def negative_at_times(data, _):
    if fn.random.coin_flip(probability=0.3, dtype=types.BOOL):
        data = augmentations.invert(data)
    return data


def own_policy():
    steeper = augmentations.shear_x.augmentation((0, 0.5), True)
    return Policy("own", 5, [[(steeper, 0.9, 4), (redder, 0.4, 2)], [(negative_at_times, 1, None)], [(redder, 1.0, 4)]])


@pipeline_def(enable_conditionals=True, batch_size=6, num_threads=2, seed=11, device_id=None)
def training(folder, way):
    jpegs, labels = fn.readers.file(file_root=folder, random_shuffle=True, name="Reader")
    shapes = fn.peek_image_shape(jpegs)
    images = fn.decoders.image(jpegs, output_type=types.RGB)
    if way == "auto":
        images = auto_augment.auto_augment(images, shape=shapes)
    elif way == "auto_image_net":
        images = auto_augment.auto_augment_image_net(images, fill_value=None)
    elif way == "rand":
        images = rand_augment.rand_augment(images, n=3, m=17, shape=shapes, excluded=["equalize"])
    elif way == "trivial":
        images = trivial_augment.trivial_augment_wide(images, shape=shapes, max_translate_rel=0.3)
    elif way == "own policy":
        images = auto_augment.apply_auto_augment(own_policy(), images)
    elif way == "own suite":
        suite = [*rand_augment.get_rand_augment_suite(use_shape=True, max_translate_rel=0.1), redder]
        images = rand_augment.apply_rand_augment(suite, images, n=2, m=15, shape=shapes, fill_value=0)
    elif way == "select":
        index = fn.random.uniform(values=[0, 1, 2], dtype=types.INT32)
        bins = signed_bin(fn.random.uniform(values=[3, 4], dtype=types.INT32))
        ops = [augmentations.brightness, redder, augmentations.rotate]
        images = select(ops, index, images, magnitude_bin=bins, num_magnitude_bins=5)
    images = fn.resize(images, size=[64, 64])
    out = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip())
    return out, labels


WAYS = ["auto", "auto_image_net", "rand", "trivial", "own policy", "own suite", "select"]
for way in WAYS:
    pipe = training(sys.argv[1], way)
    pipe.build()
    batches = [np.asarray(pipe.run()[0].as_array()) for _ in range(2)]
    assert all(b.shape == (6, 3, 64, 64) and b.max() <= 255 and b.min() >= 0 for b in batches)
    assert (batches[0] != batches[1]).any()
    print(way, "done")
