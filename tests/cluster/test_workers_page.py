# SPDX-License-Identifier: Apache-2.0
"""The code in docs/workers.md runs with the documented results."""

import numpy as np

from test_guide import ROOT, blocks, execute


def test_page(tmp_path):
    for i in range(10):
        np.save(tmp_path / f"{i}.npy", np.full(3, i, np.float32))
    names: dict = {"folder": str(tmp_path)}
    page = ROOT / "docs" / "workers.md"
    assert sum(execute(page, line, code, names) for line, code in blocks(page)) == 1
