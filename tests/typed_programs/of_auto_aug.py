# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation, with augmentations of one's own."""

from penstock import DataNode, fn, types
from penstock.auto_aug import auto_augment, rand_augment, trivial_augment
from penstock.auto_aug.augmentations import rotate, shear_x
from penstock.auto_aug.core import Policy, augmentation, select


@augmentation(mag_range=(0, 30), randomly_negate=True)
def tilted(data: DataNode, angle: DataNode, fill_value: int = 128) -> DataNode:
    return fn.rotate(data, angle=angle, fill_value=fill_value, keep_size=True)


def augmented(x: DataNode) -> DataNode:
    x = auto_augment.auto_augment(x, "image_net", shape=[224, 224], fill_value=None, interp_type=types.INTERP_NN)
    x = rand_augment.rand_augment(x, n=2, m=9, shape=fn.shapes(x), max_translate_rel=0.3)
    x = trivial_augment.trivial_augment_wide(x, excluded=["posterize"])
    policy = Policy("mine", 11, [[(tilted, 0.5, 3), (rotate.augmentation((0, 45)), 0.2, None)]])
    x = auto_augment.apply_auto_augment(policy, x, fill_value=0)
    x = rand_augment.apply_rand_augment([tilted, shear_x], x, 2, 9, monotonic_mag=True)
    return tilted(x, magnitude_bin=3, num_magnitude_bins=11)


def wrong(x: DataNode) -> None:
    auto_augment.auto_augment(x, polisy_name="image_net")  # found: call-arg
    auto_augment.auto_augment(x, shape="large")  # found: arg-type
    auto_augment.auto_augmnt(x)  # found: attr-defined
    rand_augment.rand_augment(x, n="two", m=9)  # found: arg-type
    trivial_augment.trivial_augment_wide(x, exclude=["posterize"])  # found: call-arg
    Policy("mine", 11)  # found: call-arg
    tilted.augmntation((0, 3))  # found: attr-defined
    select([], 3, x)  # found: arg-type
