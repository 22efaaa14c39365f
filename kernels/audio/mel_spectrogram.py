# SPDX-License-Identifier: Apache-2.0
"""Weighted sums of spectra in shared memory, if the sums are over frequencies and the spectra fit."""

from __future__ import annotations

from penstock.gpu.launch import Phase, Task
from penstock.gpu.schemes.spectra import fixed

_STEP = 4  # windows that a thread sums, of kernels/audio/mel_spectrogram.cu


def plan(task: Task) -> list[Phase]:
    """No phases if the sums run after the spectrogram, in a separate launch."""
    sums, spectra, out = task.call.args, task.before and task.before.args, task.outs[0]
    assert sums is not None and spectra is not None
    time_first = int(spectra["time_first"][0])
    if int(sums["axis"][0]) != time_first:
        return []
    windows, filters = out.shape[:, 1 - time_first], out.shape[:, time_first]
    launch = fixed(spectra["nfft"], windows, _STEP)
    if launch is None or not (4 * launch.lanes * filters <= launch.free).all():
        return []
    length, power = int(spectra["window_length"][0]), int(spectra["power"][0])
    return [launch.phase(f"mel_spectrogram_tiles<{launch.type}, {length}, {power}, Chain>(l);")]
