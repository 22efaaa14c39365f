# SPDX-License-Identifier: Apache-2.0
import dataclasses

import pytest

from penstock.core import request_limits


@pytest.fixture(autouse=True)
def no_second_requests(monkeypatch):
    """Prevents repeated requests: on a busy machine a response may take two seconds, and tests would count requests
    twice."""
    monkeypatch.setattr(request_limits, "DEFAULT", dataclasses.replace(request_limits.DEFAULT, hedge_s=0.0))


@pytest.fixture(scope="session")
def small_files(tmp_path_factory) -> list[str]:
    """Paths of 40 files of a few bytes."""
    root = tmp_path_factory.mktemp("small_files")
    for i in range(40):
        (root / f"{i:02}.jpg").write_bytes(bytes([i]) * (i + 1))
    return [str(root / f"{i:02}.jpg") for i in range(40)]


@pytest.fixture(scope="session")
def dali():
    return pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
