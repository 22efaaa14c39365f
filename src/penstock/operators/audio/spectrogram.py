# SPDX-License-Identifier: Apache-2.0
"""Spectra of a signal over time."""

from typing import Any

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, Layout
from ._float_only import FloatOnly


class Spectrogram(FloatOnly):
    """Computes the power spectra of windows that slide along a signal (short-time Fourier transform).

    Each window is multiplied by `window_fn`, zero-padded to `nfft`, and transformed. The output contains the squared
    magnitudes (or magnitudes) of the `nfft // 2 + 1` frequencies from 0 to half of the sampling rate. Input: one
    signal, float32, with at most one axis longer than 1. Output: float32, (frequencies, windows) with the layout "ft",
    or (windows, frequencies) with "tf". An empty signal is an error of the sample, and so is one too short for a window
    if windows are not centred.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     tone = np.cos(np.arange(16) * np.pi / 2).astype("f4")
    ...     return fn.spectrogram(types.Constant(tone), window_length=8, window_step=8, center_windows=False)
    >>> pipe().run()[0].at(0).round(2).tolist()
    [[0.0, 0.0], [1.0, 1.0], [4.0, 4.0], [1.0, 1.0], [0.0, 0.0]]
    """

    kernel = "audio/spectrogram"
    nfft = Arg(int, None, "Length of the Fourier transforms, at least `window_length`, which is the default.")
    window_length = Arg(int, 512, "Length of the windows, in samples.")
    window_step = Arg(int, 256, "Distance between the beginnings of consecutive windows, in samples.")
    window_fn = Arg(
        [float],
        None,
        "`window_length` factors by which the samples of a window are multiplied. By default a Hann window, "
        "`0.5 * (1 - cos(2 pi (i + 0.5) / window_length))`.",
    )
    power = Arg(int, 2, "2 for squared magnitudes (power), 1 for magnitudes.")
    center_windows = Arg(
        bool,
        True,
        "If True, the centre of window t is at sample `t * window_step`, windows extend beyond the ends of the signal, "
        "and there are `n // window_step + 1` of them. Otherwise it begins there, and there are "
        "`(n - window_length) // window_step + 1`; a signal shorter than a window by less than a step gives one.",
    )
    reflect_padding = Arg(
        bool,
        True,
        "Whether the signal is mirrored about its outermost samples beyond its ends, for centred windows. Otherwise it "
        "is zero there.",
    )
    layout = Arg(Layout, "ft", 'Order of the output\'s axes: "ft" or "tf".')

    def setup(self) -> None:
        v = self.values
        if v["layout"] not in ("ft", "tf"):
            raise ValueError(f"layout takes 'ft' or 'tf'; got {v['layout']!r}")
        if v["power"] not in (1, 2):
            raise ValueError(f"power takes 1 (magnitudes) or 2 (powers); got {v['power']}")
        for name in ("window_length", "window_step"):
            if v[name] < 1:
                raise ValueError(f"{name} takes a positive number of samples; got {v[name]}")
        if v["nfft"] is not None and v["nfft"] < v["window_length"]:
            raise ValueError(f"nfft is at least the window_length of {v['window_length']}; got {v['nfft']}")
        window = v["window_fn"]
        if window is not None and len(window) != v["window_length"]:
            raise ValueError(f"window_fn has {len(window)} factors, window_length is {v['window_length']}")
        if window is None:
            n = v["window_length"]
            window = 0.5 * (1 - np.cos(2 * np.pi * (np.arange(n) + 0.5) / n))
        self.window = np.array(window, "f4")[None]
        self.window.setflags(write=False)  # shared by all batches

    def plan(self, a: Arguments, x: Spec) -> None:
        super().plan(a, x)
        a.length = x.shape.prod(axis=1)
        SampleErrors.where(
            (x.shape > 1).sum(axis=1) > 1,
            lambda i: (
                f"one signal is needed, but the input has the shape {x.shape[i].tolist()}; take one channel of it"
            ),
        )
        SampleErrors.where(a.length == 0, lambda i: "the signal is empty")
        if self.values["center_windows"]:
            a.windows = a.length // a.window_step + 1
            return
        # As in DALI, a window that exceeds the end by less than a step is included, padded with zeros.
        fits = a.length > a.window_length - a.window_step
        a.windows = np.where(fits, np.maximum(a.length - a.window_length, 0) // a.window_step + 1, 0)
        SampleErrors.where(
            a.windows == 0,
            lambda i: (
                f"the signal has {a.length[i]} samples, too few for a window of {a.window_length}; pad it or "
                "center_windows"
            ),
        )

    def outputs(self, a: Arguments, x: Spec) -> Spec:
        axes = [a.windows * 0 + (a.nfft or a.window_length) // 2 + 1, a.windows]
        return Spec(np.stack(axes if a.layout == "ft" else axes[::-1], axis=1), x.dtype, str(a.layout))

    def params(self, a: Arguments, x: Spec, out: Spec) -> dict[str, Any]:
        return {
            "window": self.window,
            "nfft": a.nfft or a.window_length,
            "window_length": a.window_length,
            "window_step": a.window_step,
            "first": -(a.window_length // 2) if a.center_windows else 0,
            "reflect": a.center_windows and a.reflect_padding,
            "power": a.power,
            "time_first": a.layout == "tf",
        }
