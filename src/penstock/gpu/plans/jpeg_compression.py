# SPDX-License-Identifier: Apache-2.0
"""JPEG's losses: a launch makes planes of YCbCr with them, one makes pixels of the planes."""

from __future__ import annotations

from ..launch import Phase, Task, grid_of

_MACROBLOCK = 384  # bytes of planes
_AT_ONCE = 16  # macroblocks that a block of threads takes
_THREADS = 256  # of 8 x 2 pixels each


def plan(task: Task) -> list[Phase]:
    args, window = task.call.args, task.outs[0].stored
    assert args is not None
    planes = args["planes"]
    macroblocks = (planes[:, 1] - planes[:, 0]) // _MACROBLOCK
    pixels = (window[:, 0] // 2 + 1) * (window[:, 1] // 8 + 2) * (macroblocks > 0)
    scratch = int(planes.max(initial=0))
    return [
        Phase(
            "jpeg_squeeze(l);",
            grid_of(-(-macroblocks // _AT_ONCE), task.n),
            (6 * _AT_ONCE, 1, 1),
            scratch=scratch,
            resident=6,
        ),
        Phase("jpeg_expand(l);", grid_of(-(-pixels // _THREADS), task.n), scratch=scratch),
    ]
