# SPDX-License-Identifier: Apache-2.0
"""Reverb: finds the direct sound in responses, then computes tiles of the output, then their loudness."""

from __future__ import annotations

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task, grid_of, several_each

_THREADS, _CHUNK, _SUMMING, _SCALED_AT_ONCE = 256, 256, 512, 2048
_TILE = 4 * _THREADS


def plan(task: Task) -> list[Phase]:
    args, n, volumes = task.call.args, task.n, task.ins[0].volumes()
    assert args is not None
    scratch, each = 16 * n, (1, min(n, 65535), 1)
    summing = (_SUMMING, 1, 1)
    tiles = f"reverb_tiles<{_THREADS}, {_CHUNK}>(l);"
    phases = [
        Phase(f"reverb_delays<{_SUMMING}>(l);", each, summing, scratch=scratch),
        Phase(tiles, grid_of(-(-volumes // _TILE) + 1, n), (_THREADS, 1, 1), scratch=scratch),
    ]
    if plain(args["normalize"])[:1].any():
        scaled = grid_of(several_each(-(-volumes // _SCALED_AT_ONCE)), n)
        phases.append(Phase(f"reverb_gains<{_SUMMING}>(l);", each, summing, scratch=scratch))
        phases.append(Phase("reverb_scale(l);", scaled, scratch=scratch))
    return phases
