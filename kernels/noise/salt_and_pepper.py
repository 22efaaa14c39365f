# SPDX-License-Identifier: Apache-2.0
"""Salt and pepper: one launch; whether pixels or elements are disturbed is a compile-time constant."""

from __future__ import annotations

import math

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.noise import one_launch

_MOST_CHANNELS = 4  # that are compile-time constants


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
        # A thread makes a multiple of 16 bytes.
        run = math.lcm(4 * channels, 16 // min(out.dtype.itemsize, 16))
        runs = -(-out.volumes() // run)
        return one_launch(task, "salt_and_pepper_inner", runs * 16 // min(out.dtype.itemsize, 4), f", {channels}")
    return one_launch(task, "salt_and_pepper_pixels")
