# SPDX-License-Identifier: Apache-2.0
"""AutoAugment: Cubuk et al., AutoAugment: Learning Augmentation Policies from Data
(https://arxiv.org/abs/1805.09501)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .. import fn, types
from ..core.constructors import keywords_checked, suggest
from ..data_node import DataNode
from ..graph.branching import if_else
from ..types import DALIInterpType
from . import _policies
from . import augmentations as a
from .core import Policy, _Augmentation, _native, signed_bin
from .core._args import forbid_unused_kwargs
from .core._suites import kwargs_of, native_table
from .core._utils import get_translations, pretty_select


@keywords_checked
def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Applies AutoAugment with one of the policies of the paper.

    * `data`: uint8 images (HWC) or sequences (FHWC), on the CPU or the GPU.
    * `policy_name`: "image_net", "reduced_image_net", "svhn" or "reduced_cifar10".
    * `shape`: height and width of the images. If given, the maximum translation is `max_translate_rel` (by default 1.0)
      times the shape, otherwise `max_translate_abs` pixels (250). Both take one number, or one for the height and one
      for the width. "reduced_image_net" has no translations and accepts none of the three.
    * `fill_value`: value outside the image; None repeats the border.
    * `interp_type`: `types.INTERP_LINEAR` (the default) or `types.INTERP_NN`.
    * `seed`: seed of the random choices. By default derived from the pipeline's.

    >>> from penstock import pipeline_def, types
    >>> from penstock.auto_aug import auto_augment
    >>> import numpy as np
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = types.Constant(np.zeros((8, 8, 3), np.uint8), layout="HWC")
    ...     return auto_augment.auto_augment(x, shape=[8, 8])
    >>> pipe().run()[0].at(0).shape
    (8, 8, 3)
    """
    makers = {
        "image_net": get_image_net_policy,
        "reduced_image_net": get_reduced_image_net_policy,
        "svhn": get_svhn_policy,
        "reduced_cifar10": get_reduced_cifar10_policy,
    }
    if not isinstance(policy_name, str) or policy_name not in makers:
        near = suggest(str(policy_name), makers)
        raise ValueError(f"`policy_name` must be one of {', '.join(map(repr, makers))}; got {policy_name!r}.{near}")
    kwargs = kwargs_of(fill_value, interp_type, shape)
    if policy_name != "reduced_image_net":
        policy = makers[policy_name](shape is not None, max_translate_abs, max_translate_rel)
        return apply_auto_augment(policy, data, seed, **kwargs)
    given = {"shape": shape, "max_translate_abs": max_translate_abs, "max_translate_rel": max_translate_rel}
    for name, value in given.items():
        if value is not None:
            raise ValueError(
                f"the policy `{policy_name}` has no augmentations that depend on the shape, so the `{name}` argument "
                "must not be specified"
            )
    return apply_auto_augment(get_reduced_image_net_policy(), data, seed, **kwargs)


@keywords_checked
def auto_augment_image_net(
    data: DataNode,
    shape: DataNode | Sequence[int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
    seed: int | None = None,
) -> DataNode:
    """Applies `auto_augment` with the policy "image_net"."""
    return auto_augment(data, "image_net", shape, fill_value, interp_type, max_translate_abs, max_translate_rel, seed)


def apply_auto_augment(policy: Policy, data: DataNode, seed: int | None = None, **kwargs: Any) -> DataNode:
    """Applies AutoAugment with a user-defined policy; see `auto_augment`.

    `kwargs`, such as `shape`, `fill_value` and `interp_type`, are passed to the augmentations that accept them.
    """
    who, suite = "apply_auto_augment", "get_image_net_policy"
    policies, bins = policy.sub_policies, policy.num_magnitude_bins
    stages = max((len(p) for p in policies), default=0)
    if not policies:
        raise ValueError(f"`{who}` cannot run empty policy: {policy}")
    if not stages:
        return data
    augmentations = policy.augmentations.values()
    forbid_unused_kwargs(augmentations, kwargs, who)
    steps = np.zeros((len(policies), stages, 1, 2, _native.FLOATS), "f4")
    steps[..., -1] = 1  # probability
    for i, sub_policy in enumerate(policies):
        for j, (aug, p, bin_) in enumerate(sub_policy):
            table = native_table([aug], [0 if aug.mag_range is None else bin_], bins, kwargs, who, suite)
            if table is None:
                return _by_branches(policy, data, stages, seed, kwargs)
            steps[i, j], steps[i, j, ..., -1] = table[0], p
    given = _native.accepted(augmentations, kwargs)
    table = steps.reshape(-1, _native.FLOATS)
    return _native.augment(data, table=table, stages=stages, policies=True, seed=seed, **given)


def _by_branches(policy: Policy, data: DataNode, stages: int, seed: int | None, kwargs: dict[str, Any]) -> DataNode:
    """For user-defined augmentations: in each stage, the augmented samples are split into branches."""
    n = len(policy.sub_policies)
    should_run = fn.random.uniform(range=[0, 1], shape=(stages,), dtype=types.FLOAT, seed=seed)
    chosen = fn.random.uniform(values=list(range(n)), seed=seed, dtype=types.INT32)
    probabilities, bins = np.zeros((n, stages), "f4"), np.zeros((n, stages), "i4")
    for i, sub_policy in enumerate(policy.sub_policies):
        for j, (_, p, bin_) in enumerate(sub_policy):
            probabilities[i, j], bins[i, j] = p, bin_ or 0
    probability, bin_of = types.Constant(probabilities)[chosen], types.Constant(bins)[chosen]
    indices, augmentations = _sub_policy_to_augmentation_matrix_map(policy)
    index = types.Constant(indices)[chosen]
    magnitude: Any = bin_of
    if any(aug.randomly_negate for aug in policy.augmentations.values()):
        magnitude = signed_bin(bin_of, seed=seed, shape=(stages,))
    for i in range(stages):

        def stage(i: int = i, data: DataNode = data) -> DataNode:
            call = {"data": data, "magnitude_bin": magnitude[i], "num_magnitude_bins": policy.num_magnitude_bins}
            call |= kwargs
            return pretty_select(augmentations[i], index[i], call, "apply_auto_augment", "get_image_net_policy")

        before = data
        data = if_else(should_run[i] < probability[i], stage, lambda before=before: before)
    return data


def _sub_policy_to_augmentation_matrix_map(policy: Policy) -> tuple[np.ndarray, list[list[_Augmentation]]]:
    """For each stage, a list of its augmentations, the identity last; and for each sub-policy and stage, the index in
    this list."""
    stages = max(len(p) for p in policy.sub_policies)
    lists = [[*dict.fromkeys(p[s][0] for p in policy.sub_policies if s < len(p)), a.identity] for s in range(stages)]
    matrix = np.zeros((len(policy.sub_policies), stages), np.int32)
    for i, sub_policy in enumerate(policy.sub_policies):
        for s in range(stages):
            # The last index (identity) if the sub-policy is shorter, even if the identity is also in the list before.
            matrix[i, s] = lists[s].index(sub_policy[s][0]) if s < len(sub_policy) else len(lists[s]) - 1
    return matrix, lists


def _named(use_shape: bool, max_translate_abs: Any, max_translate_rel: Any) -> dict[str, _Augmentation]:
    """The operations of the paper with their ranges, by name."""
    x, y = get_translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel)
    return {
        "shear_x": a.shear_x.augmentation((0, 0.3), True),
        "shear_y": a.shear_y.augmentation((0, 0.3), True),
        "translate_x": x,
        "translate_y": y,
        "rotate": a.rotate.augmentation((0, 30), True),
        "brightness": a.brightness.augmentation((0.1, 1.9), False, None),
        "contrast": a.contrast.augmentation((0.1, 1.9), False, None),
        "color": a.color.augmentation((0.1, 1.9), False, None),
        "sharpness": a.sharpness.augmentation((0.1, 1.9), False, a.sharpness_kernel_shifted),
        "posterize": a.posterize.augmentation((0, 4), False, a.poster_mask_uint8),
        "solarize": a.solarize.augmentation((0, 256), False),
        "solarize_add": a.solarize_add.augmentation((0, 110), False),
        "invert": a.invert,
        "equalize": a.equalize,
        "auto_contrast": a.auto_contrast,
    }


def _policy(name: str, text: str, use_shape: bool, max_translate_abs: Any, max_translate_rel: Any) -> Policy:
    named = _named(use_shape, max_translate_abs, max_translate_rel)
    sub_policies = [[(named[n], p, m) for n, p, m in steps] for steps in _policies.parse(text)]
    return Policy(name, 11, sub_policies)


def get_image_net_policy(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Returns the policy found for ImageNet, for `apply_auto_augment`.

    With `use_shape`, translations are relative to the shape, up to `max_translate_rel` (1.0), otherwise up to
    `max_translate_abs` pixels (250).
    """
    return _policy("ImageNetPolicy", _policies.IMAGE_NET, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_cifar10_policy(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Returns the policy found for reduced CIFAR-10; arguments as in `get_image_net_policy`."""
    return _policy("ReducedCifar10Policy", _policies.REDUCED_CIFAR10, use_shape, max_translate_abs, max_translate_rel)


def get_svhn_policy(
    use_shape: bool = False,
    max_translate_abs: int | Sequence[int] | None = None,
    max_translate_rel: float | Sequence[float] | None = None,
) -> Policy:
    """Returns the policy found for SVHN; arguments as in `get_image_net_policy`."""
    return _policy("SvhnPolicy", _policies.SVHN, use_shape, max_translate_abs, max_translate_rel)


def get_reduced_image_net_policy() -> Policy:
    """Returns the policy found for reduced ImageNet, which has no translations."""
    return _policy("ReducedImageNetPolicy", _policies.REDUCED_IMAGE_NET, False, None, None)
