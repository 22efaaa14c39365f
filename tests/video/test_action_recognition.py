# SPDX-License-Identifier: Apache-2.0
"""examples/action_recognition.py learns: directions can't be told from single frames."""

import importlib.util
from pathlib import Path

import pytest

pytest.importorskip("av", reason="PyAV is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.slow
def test_it_learns(tmp_path):
    path = Path(__file__).parents[2] / "examples" / "action_recognition.py"
    spec = importlib.util.spec_from_file_location("action_recognition", path)
    example = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(example)
    example.make_videos(tmp_path / "videos")
    assert example.train(tmp_path / "videos", epochs=6, batch=16, threads=2) > 0.6
