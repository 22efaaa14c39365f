# SPDX-License-Identifier: Apache-2.0
"""The training programs in examples/ run unchanged, and their losses decrease."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
pytestmark = pytest.mark.slow


def losses(example, *options, needs):
    """The numbers after the colon in each line of a program's output, as tuples."""
    for module in needs:
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    command = [sys.executable, str(ROOT / "examples" / example), *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
    lines = [line.partition(":")[2] for line in done.stdout.splitlines()]
    return [tuple(map(float, re.findall(r"\d+\.\d+", line))) for line in lines]


@pytest.fixture(scope="module")
def of_tfrecord():
    return losses("imagenet_shards.py", "--format", "tfrecord", "--epochs", 21, needs=["torch"])


def test_tfrecord(of_tfrecord):
    assert of_tfrecord[0][0] > 1.3 and of_tfrecord[-1][0] < 0.5 * of_tfrecord[0][0]


def test_webdataset_gives_the_same(of_tfrecord):
    """The samples and their order are the same, so the losses are, too."""
    of_webdataset = losses("imagenet_shards.py", "--format", "webdataset", "--epochs", 21, needs=["torch"])
    assert of_webdataset == of_tfrecord


def test_hugging_face_into_flax():
    found = losses("hugging_face_flax.py", "--steps", 41, needs=["pyarrow", "jax", "flax", "optax"])
    assert found[0][0] > 1.3 and found[-1][0] < 0.5 * found[0][0]


def test_ssd_on_coco():
    found = losses("ssd_coco.py", "--steps", 40, needs=["torch"])
    assert found[-1][0] < found[0][0] and found[-1][1] < 0.7 * found[0][1]
