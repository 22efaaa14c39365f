# SPDX-License-Identifier: Apache-2.0
"""JPEG's losses: one launch makes YCbCr planes with the losses, a second one makes pixels from the planes."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task, grid_of, several_each

_MACROBLOCK = 384  # bytes of planes per macroblock
_AT_ONCE = 16  # macroblocks per block of threads, one thread for each of their 6 blocks of samples
_THREADS = 128  # per block, with 8 x 4 pixels each
_AROUND = 16  # readable bytes after the planes


def plan(task: Task) -> list[Phase]:
    args, window = task.call.args, task.outs[0].stored
    assert args is not None
    planes = args["planes"]
    macroblocks = (planes[:, 1] - planes[:, 0]) // _MACROBLOCK
    pieces = (window[:, 0] // 4 + 2) * (window[:, 1] // 8 + 2) * (macroblocks > 0)
    squeezing, expanding = several_each(-(-macroblocks // _AT_ONCE)), several_each(-(-pieces // _THREADS))
    scratch = planes.max(initial=0) + _AROUND
    return [
        Phase("jpeg_squeeze(l);", grid_of(squeezing, task.n), (6 * _AT_ONCE, 1, 1), scratch=scratch, resident=8),
        Phase("jpeg_expand(l);", grid_of(expanding, task.n), (_THREADS, 1, 1), scratch=scratch, resident=5),
    ]
