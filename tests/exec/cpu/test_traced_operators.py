# SPDX-License-Identifier: Apache-2.0
"""Operators whose rules run for every batch with new sizes: only those listed here."""

import pytest

from more_traced_cases import CASES, N
from penstock import fn, pipeline_def
from penstock.core.op import REGISTRY

_TABLES = "sizes follow from random numbers or from what files hold"
_RANDOM = "random numbers are drawn by the rules"
BY_RULES = {
    "_auto_aug.augment": "which augmentations are done is data",
    "_video.resized_video": "extents follow from what files hold",
    "audio.freq_mask": _RANDOM,
    "audio.time_mask": _RANDOM,
    "decoders.image_crop": _TABLES,
    "decoders.image_random_crop": _TABLES,
    "decoders.image_slice": _TABLES,
    "decoders.inflate": "numbers of chunks are data, as are their offsets and sizes",
    "decoders.video": "extents follow from what files hold",
    "segmentation.random_mask_pixel": _TABLES,
    "segmentation.random_object_bbox": _TABLES,
}
# Traced in test_compiled_plan.py and gpu/test_computed_plans.py.
ELSEWHERE = {
    *("brightness", "brightness_contrast", "cast", "color_twist", "contrast", "copy", "decoders.image", "hsv", "hue"),
    *("random_resized_crop", "saturation"),
    "experimental.resize",  # an alias of resize
}


def native():
    """Operators with kernels that can be part of chains."""
    ours = {n: c for n, c in REGISTRY.items() if c.__module__.startswith("penstock.operators.")}
    return {n: c for n, c in ours.items() if c.is_native() and not c.aliases and c.kernel}


def test_who_is_not_traced_is_known():
    by_rules = {name for name, c in native().items() if not c.traced}
    assert by_rules == set(BY_RULES), "say here why its rules can't be traced"


@pytest.fixture(scope="module")
def used():
    """The names of the operators in all cases."""
    names = set()
    for define in CASES.values():

        def feed(make, layout=None, side=False):
            layout = layout or ("HWC" if make(0)[0].ndim == 3 and not side else None)
            return fn.external_source(source=[make(0)], **({"layout": layout} if layout else {}))

        pipe = pipeline_def(lambda: define(feed), batch_size=N, num_threads=1, device_id=None)()  # noqa: B023
        pipe.build()
        names |= {n.op.fn_name for n in pipe._plan.nodes}
    return names


def test_who_is_traced_is_run_in_a_case(used):
    assert {name for name, c in native().items() if c.traced} <= used | ELSEWHERE
