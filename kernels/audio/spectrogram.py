# SPDX-License-Identifier: Apache-2.0
"""Spectrograms: windows side by side in shared memory."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.spectra import transforms


def plan(task: Task) -> list[Phase]:
    args, out = task.call.args, task.outs[0]
    assert args is not None
    windows = out.shape[:, 0 if int(args["time_first"][0]) else 1]
    length = int(args["window_length"][0])
    return transforms("spectrogram_windows", args, windows, few_lengths=True, more=f", {length}")
