# SPDX-License-Identifier: Apache-2.0
import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def data() -> Path:
    """A folder of real files (photos500/, photos1280/, formats/), named by PENSTOCK_DATA."""
    path = os.environ.get("PENSTOCK_DATA")
    if not path or not Path(path).is_dir():
        pytest.skip("PENSTOCK_DATA does not name a folder of real files")
    return Path(path)
