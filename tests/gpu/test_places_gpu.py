# SPDX-License-Identifier: Apache-2.0
"""The real NVRTC takes the kernels that read at computed places (compiling needs no GPU)."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from segments import Segment, Step
from test_compile import _SCRIPT

from penstock.core.batch import Spec

SHAPES = {"HW": (5, 6), "HWC": (5, 6, 3), "CHW": (3, 5, 6)}


def segments():
    for dtype, layout in (("u1", "HWC"), ("i2", "CHW"), ("f4", "HW")):
        image = Spec.uniform(2, SHAPES[layout], np.dtype(dtype), layout)
        yield Segment([Step("geometry/displace", [1], [0], {"planar": layout != "HWC"})], {0: image, 1: image}, {}, {1})
    for dtype, channels in (("u1", 3), ("u2", 1), ("f4", 6)):
        image = Spec.uniform(2, (5, 6, channels), np.dtype(dtype), "HWC")
        specs = {0: image, 1: image, **dict.fromkeys((2, 3), Spec.uniform(2, (5, 6), np.dtype("f4"), "HW"))}
        yield Segment([Step("geometry/remap", [1], [0, 2, 3], {})], specs, {}, {1})
    for dtype, of in (("u1", 0), ("f4", 0), ("u1", 9), ("i2", 6)):
        canvas = Spec.uniform(2, (5, 6, 3), np.dtype(dtype), "HWC")
        yield Segment([Step("geometry/multi_paste", [0], [], {"dtype": of})], {0: canvas}, {}, {0})


def test_the_real_compiler_takes_them():
    found = sorted({(x.source, x.entry) for s in segments() for x in s.launches()[1]})
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("PENSTOCK_NVRTC", "PENSTOCK_CUDA"))}
    environment["PYTHONPATH"] = str(Path(__file__).parents[2] / "src")
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT], input=json.dumps(found), text=True, capture_output=True, env=environment
    )
    if done.returncode == 77:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stderr
