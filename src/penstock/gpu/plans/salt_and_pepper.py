# SPDX-License-Identifier: Apache-2.0
"""Salt and pepper: one launch; whether pixels or elements are disturbed is compiled in."""

from __future__ import annotations

from ..launch import Phase, Task
from ._noise import one_launch

_MOST_CHANNELS = 4  # that are compiled in


def plan(task: Task) -> list[Phase]:
    args = task.call.args
    assert args is not None
    channels = int(args["channels"][0])
    if not (args["channels"] == channels).all():
        return one_launch(task, "salt_and_pepper_pixels")
    if channels == 1:
        return one_launch(task, "salt_and_pepper_elements")
    if channels <= _MOST_CHANNELS and (args["inner"] == 1).all():
        (out,) = task.outs
        fours = -(-out.volumes() // (4 * channels))
        return one_launch(task, "salt_and_pepper_inner", fours * 16 // out.dtype.itemsize, f", {channels}")
    return one_launch(task, "salt_and_pepper_pixels")
