# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, and augmentations of one's own.

Modules: `auto_augment`, `rand_augment`, `trivial_augment`, `augmentations`, `core`.
"""
