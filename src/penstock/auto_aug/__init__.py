# SPDX-License-Identifier: Apache-2.0
"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, and user-defined augmentations.

Modules: `auto_augment`, `rand_augment`, `trivial_augment`, `augmentations`, `core`.
"""
