# SPDX-License-Identifier: Apache-2.0
"""Salt and pepper: one launch; whether pixels or elements are disturbed is compiled in."""

from __future__ import annotations

from ..launch import Phase, Task
from ._noise import one_launch


def plan(task: Task) -> list[Phase]:
    assert task.call.args is not None
    single = bool((task.call.args["channels"] == 1).all())
    return one_launch(task, f"salt_and_pepper_{'elements' if single else 'pixels'}")
