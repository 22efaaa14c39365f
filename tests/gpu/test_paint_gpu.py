# SPDX-License-Identifier: Apache-2.0
"""The real NVRTC takes the kernels that paint: tables, noise, erased regions, grids (compiling needs no GPU)."""

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

NOISE = {"key": 1, "position": 2, "epoch": 0}
REGION = {"begin": np.zeros((1, 3), "i8"), "end": np.ones((1, 3), "i8"), "fill": np.ones((1, 3), "f4"), "regions": 1}
GRID = {"cosine": 0.1, "sine": 0.1, "ratio": 0.5, "y_axis": 0, "x_axis": 1}


def segment(kernel, columns, dtype, to=None, layout="HWC", shape=(5, 6, 3)):
    of, to = np.dtype(dtype), np.dtype(to or dtype)
    specs = {0: Spec.uniform(2, shape, of, layout), 1: Spec.uniform(2, shape, to, layout)}
    return Segment([Step(kernel, [1], [0], columns)], specs, {}, {1})


def segments():
    for dtype in ("u1", "u4", "i8", "f4"):
        yield segment("noise/gaussian", {**NOISE, "stddev": 1.0}, dtype)
        yield segment("noise/shot", {**NOISE, "factor": 2.0}, dtype)
        yield segment("noise/salt_and_pepper", {**NOISE, "channels": 1}, dtype)
        yield segment("noise/salt_and_pepper", {**NOISE, "channels": 3, "inner": 1}, dtype)
    table = {"table": np.zeros((1, 64), "u1"), "size": 2}
    for dtype, to in (("u1", "u1"), ("u1", "f4"), ("i8", "f2"), ("i4", "f8"), ("i2", "?")):
        yield segment("color/lookup_table", table, dtype, to)
    for dtype, layout, shape in (("u1", "HWC", (5, 6, 3)), ("f4", "CHW", (3, 5, 6)), ("f2", "HWC", (5, 6, 9))):
        yield segment("geometry/erase", {**REGION, "channels": layout.index("C")}, dtype, None, layout, shape)
    yield segment("color/grid_mask", GRID, "u1")
    yield segment("color/grid_mask", {**GRID, "y_axis": 1, "x_axis": 2}, "f4", None, "CHW", (3, 5, 6))
    yield segment("color/grid_mask", GRID, "i2", None, "HW", (5, 6))


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
