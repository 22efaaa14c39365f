# SPDX-License-Identifier: Apache-2.0
"""Spectrograms: windows side by side in shared memory."""

from __future__ import annotations

from penstock.core.traced import plain
from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.spectra import fixed, transforms

_SECTOR = 8  # floats, of kernels/audio/spectrogram.cu


def plan(task: Task) -> list[Phase]:
    args, out = task.call.args, task.outs[0]
    assert args is not None
    time_first = int(args["time_first"][0])
    windows = out.shape[:, 0 if time_first else 1]
    bins = int(plain(args["nfft"]).max(initial=1)) // 2 + 1
    launch = None if time_first else fixed(args["nfft"], windows, _SECTOR, 4 * _SECTOR * bins)
    length, power = int(args["window_length"][0]), int(args["power"][0])
    if launch is None:
        return transforms("spectrogram_windows", args, windows, few_lengths=True, more=f", {length}")
    return [launch.phase(f"spectrogram_rows<{launch.type}, {length}, {power}>(l);")]
