# SPDX-License-Identifier: Apache-2.0
"""Blurring by a Gaussian."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors, listed
from ...core.op import Arguments, PerFrame
from ._linear_filter import Separable, per_axis

_LONGEST = 1 << 16


class GaussianBlur(Separable):
    """Convolves the input with a sampled Gaussian, one axis after the other.

    Along each spatial axis, element i of a window of odd size w is `exp(-(i - r)^2 / (2 sigma^2))` with
    `r = (w - 1) / 2`, divided by the sum of all elements. If only `sigma` is given, w is `2 ceil(3 sigma) + 1`; if only
    the window is given, sigma is `0.3 (r - 1) + 0.8`. The border is mirrored without its outermost element
    (`dcb|abcd|cba`). Sums are computed in float32.

    Input: one to three spatial axes, channels first, last or absent (HWC, CHW, HW, DHWC, CDHW, W, ...), any type but
    bool. Without a layout, all axes are spatial. Frames of a sequence are blurred separately.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.uint8([[0, 0, 0, 100, 0, 0, 0]]), layout="HW")
    ...     return fn.gaussian_blur(x, window_size=[1, 5], sigma=1.0)
    >>> pipe().run()[0].at(0).tolist()
    [[0, 5, 24, 40, 24, 5, 0]]
    """

    sigma = PerFrame(
        [float], [0.0], "Standard deviation in elements, for all axes or one per axis; 0: computed from the window."
    )
    window_size = PerFrame(
        [int], [0], "Odd size of the window, for all axes or one per axis; 0: computed from `sigma`."
    )

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        sigma, size = per_axis(a.sigma, "sigma", a.n_space), per_axis(a.window_size, "window_size", a.n_space)
        _check_sign("sigma", sigma)
        _check_sign("window_size", size)
        SampleErrors.where(
            ((sigma == 0) & (size == 0)).any(axis=1),
            lambda i: (
                "neither `sigma` nor `window_size` is given for all axes: "
                f"sigma={sigma[i].tolist()}, window_size={size[i].tolist()}"
            ),
        )
        with np.errstate(over="ignore"):
            wide = 2 * np.ceil(np.float32(3) * sigma).astype("f8") + 1
        size = np.where(size == 0, wide, size)
        SampleErrors.where(
            (size % 2 != 1).any(axis=1),
            lambda i: f"`window_size` should have odd length, got {size[i].astype('i8').tolist()}",
        )
        SampleErrors.where(
            ~(size < _LONGEST).all(axis=1),
            lambda i: f"windows of {listed(size[i])} elements are too large; they may have {_LONGEST - 1}",
        )
        radius = (size - 1) / 2
        spread = np.where(sigma == 0, (radius - 1) * 0.3 + 0.8, sigma)
        a.size = size.astype("i4")[:, None]
        at = np.arange(int(size.max(initial=1))) - radius[..., None]
        with np.errstate(under="ignore"):
            windows = np.where(at <= radius[..., None], np.exp(-(at**2) / (2 * spread[..., None] ** 2)), 0)
        a.windows = (windows / windows.sum(axis=2, keepdims=True))[:, None]


def _check_sign(name: str, column: np.ndarray) -> None:
    SampleErrors.where(
        ~(column >= 0).all(axis=1), lambda i: f"`{name}` must have non-negative values, got {column[i].tolist()}"
    )
