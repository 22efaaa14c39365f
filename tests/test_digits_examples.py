# SPDX-License-Identifier: Apache-2.0
"""The examples that learn scikit-learn's digits are accurate, and mix images and targets consistently."""

import importlib.util
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from modules import ROOT, load
from penstock import fn, pipeline_def

LAST = r"^accuracy (\d\.\d+), waited \d+\.\d% for data$"


def run(example, *options, needs, pattern, processes=1):
    """The matches of a pattern in a program's output."""
    for module in ("sklearn", "PIL", *needs):
        if importlib.util.find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
    start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"] if processes > 1 else []
    command = [sys.executable, *start, str(ROOT / "examples" / example), *map(str, options)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=500)
    assert done.returncode == 0, done.stderr
    return re.findall(pattern, done.stdout, re.M)


def accuracies(example, *options, **kwargs):
    """The accuracy after each epoch, on the 360 test digits."""
    pattern = r"^epoch \d+: loss \d+\.\d+, accuracy (\d\.\d+) of 360$"
    return [float(x) for x in run(example, *options, pattern=pattern, **kwargs)]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The digits, for examples that need not write them themselves."""
    for module in ("sklearn", "PIL"):
        pytest.importorskip(module)
    folder = tmp_path_factory.mktemp("digits")
    load(ROOT / "examples" / "digits.py").write(folder)
    return folder


@pytest.mark.slow
def test_resnet_of_two_processes(written):
    options = ["--data", written, "--epochs", 3, "--mix", "mixup"]
    found = accuracies("resnet_ddp.py", *options, needs=["torch"], processes=2)
    assert len(found) == 3 and found[-1] > 0.8


@pytest.mark.slow
def test_vit_in_flax(written):
    found = accuracies("vit_digits_flax.py", "--data", written, "--epochs", 3, needs=["jax", "flax", "optax"])
    assert len(found) == 3 and found[-1] > 0.6


@pytest.mark.slow
def test_lightning():
    (found,) = run("lightning_digits.py", "--epochs", 2, needs=["torch", "lightning"], pattern=LAST)
    assert float(found) > 0.8


@pytest.mark.slow
def test_hugging_faces_trainer():
    needs = ["torch", "transformers", "accelerate"]
    (found,) = run("hugging_face_trainer.py", "--epochs", 4, needs=needs, pattern=r"^accuracy (\d\.\d+) of 360$")
    assert float(found) > 0.6


@pytest.fixture(scope="module")
def digits():
    return load(ROOT / "examples" / "digits.py")


def mixed(mix):
    """The images and targets of ten classes, with one colour per class."""
    images = [np.full((16, 16, 3), k, "f4") for k in range(10)]

    @pipeline_def(batch_size=10, num_threads=2, seed=3)
    def pipe():
        pictures = fn.external_source(lambda: images, layout="HWC")
        targets = fn.external_source(lambda: list(np.eye(10, dtype="f4")))
        return mix(pictures, targets)

    made = pipe()
    for _ in range(5):
        pictures, targets = (x.as_array() for x in made.run())
        assert pictures.shape == (10, 16, 16, 3) and targets.shape == (10, 10)
        np.testing.assert_allclose(targets.sum(1), 1, atol=1e-6)
        assert (targets > 0).sum(1).max() == 2
        yield from ((k, *pair) for k, pair in enumerate(zip(pictures, targets)))


def test_mixup(digits):
    shares = []
    for own, picture, target in mixed(digits.mixup):
        np.testing.assert_allclose(picture, target @ np.arange(10), rtol=1e-5)
        shares.append(target[own])
    assert 0 <= min(shares) < 0.3 and max(shares) > 0.9  # Beta(0.2, 0.2) is nearly one or the other


def test_cutmix(digits):
    shares = []
    for own, picture, target in mixed(digits.cutmix):
        colours, counts = np.unique(picture, return_counts=True)
        assert set(colours) <= set(np.flatnonzero(target))
        for colour, count in zip(colours, counts):
            np.testing.assert_allclose(target[int(colour)], count / picture.size, rtol=1e-5)
        other = np.argwhere(picture[..., 0] != own)
        if len(other):  # one rectangle
            height, width = np.ptp(other, axis=0) + 1
            assert height * width == len(other)
        shares.append(target[own])
    assert min(shares) < 0.5 < max(shares)
