# SPDX-License-Identifier: Apache-2.0
import pytest


@pytest.fixture
def files(tmp_path):
    paths = []
    for i in range(10):
        path = tmp_path / f"{i}.bin"
        path.write_bytes(bytes([i]) * (1000 + i))
        paths.append(str(path))
    return paths
