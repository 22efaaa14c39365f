# SPDX-License-Identifier: Apache-2.0
"""bench/measure.py, which the benchmarks share."""

import os
from pathlib import Path

from modules import ROOT


def test_descendants_with_smaller_numbers_than_their_parents(tmp_path, monkeypatch):
    """The kernel starts again with small process numbers after the largest."""
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import measure

    own, child, grandchild, stranger = os.getpid(), 9_000_000, 3, 9_000_001
    for pid, parent in ((own, 1), (child, own), (grandchild, child), (stranger, 1)):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        (folder / "stat").write_text(f"{pid} (a) name) S {parent} 0 0")
    monkeypatch.setattr(measure, "Path", lambda path: Path(str(tmp_path) + path))
    assert {folder.name for folder in measure._workers()} == {str(child), str(grandchild)}
