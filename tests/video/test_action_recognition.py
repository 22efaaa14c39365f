# SPDX-License-Identifier: Apache-2.0
"""examples/action_recognition.py learns directions, which cannot be recognised in single frames."""

import pytest

from modules import ROOT, load

pytest.importorskip("av", reason="PyAV is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.slow
def test_it_learns(tmp_path):
    example = load(ROOT / "examples" / "action_recognition.py")
    example.make_videos(tmp_path / "videos")
    assert example.train(tmp_path / "videos", epochs=6, batch=16, threads=2) > 0.6
