# SPDX-License-Identifier: Apache-2.0
"""The pictures that a graph is run for, on the device where they lie."""

from __future__ import annotations

from typing import Any

from ....core.source import Source
from ....graph import trace


class _Given(Source):
    """Has its batches from whoever runs the plan."""

    devices = ("cpu", "gpu")
    runs_on_gpu = True  # what is there is not copied


def given(name: str, device: str = "cpu") -> Any:
    return trace.call(_Given, (), {"name": name, "device": device})
