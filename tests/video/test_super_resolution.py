# SPDX-License-Identifier: Apache-2.0
"""examples/super_resolution.py learns what cubic interpolation lacks."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("av", reason="PyAV is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.slow
def test_it_learns(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "super_resolution.py"
    spec = importlib.util.spec_from_file_location("super_resolution", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.make_videos(tmp_path)
    ours, theirs = example.train(sorted(map(str, tmp_path.iterdir())), epochs=5, batch=4, threads=2)
    assert theirs > 20 and ours > theirs + 0.5
