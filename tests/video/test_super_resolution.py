# SPDX-License-Identifier: Apache-2.0
"""examples/super_resolution.py learns the difference from cubic interpolation."""

import pytest

from modules import ROOT, load

pytest.importorskip("av", reason="PyAV is not installed")
pytest.importorskip("torch", reason="PyTorch is not installed")


@pytest.mark.slow
def test_it_learns(tmp_path):
    example = load(ROOT / "examples" / "super_resolution.py")
    example.make_videos(tmp_path)
    ours, theirs = example.train(sorted(map(str, tmp_path.iterdir())), epochs=5, batch=4, threads=2)
    assert theirs > 20 and ours > theirs + 0.5
