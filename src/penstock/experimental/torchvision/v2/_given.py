# SPDX-License-Identifier: Apache-2.0
"""The input of a graph, on the device of the images."""

from __future__ import annotations

from typing import Any

from ....core.source import Source
from ....graph import trace


class _Given(Source):
    """A source whose batches are passed when the plan is run."""

    devices = ("cpu", "gpu")
    runs_on_gpu = True  # existing GPU data is not copied


def given(name: str, device: str = "cpu") -> Any:
    return trace.call(_Given, (), {"name": name, "device": device})
