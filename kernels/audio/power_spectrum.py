# SPDX-License-Identifier: Apache-2.0
"""Power spectra: signals side by side in shared memory."""

from __future__ import annotations

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.spectra import transforms


def plan(task: Task) -> list[Phase]:
    args, out = task.call.args, task.outs[0]
    assert args is not None
    axis = int(args["axis"][0])
    signals = out.shape[:, :axis].prod(axis=1) * out.shape[:, axis + 1 :].prod(axis=1)
    # Frames have few different lengths; whole recordings have many.
    return transforms("power_spectrum_signals", args, signals, few_lengths=bool(plain(signals).min() > 1))
