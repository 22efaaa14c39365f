# SPDX-License-Identifier: Apache-2.0
"""The Laplacian: the sum of the second derivatives."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arg, Arguments, PerFrame
from ...core.traced import known_values
from ._linear_filter import Separable, per_axis

_LONGEST = 31


def _windows() -> tuple[np.ndarray, np.ndarray]:
    """Smoothing and derivative windows by size: powers of (1, 1), and their second differences."""
    smooth = np.zeros((_LONGEST + 1, _LONGEST))
    smooth[1, 0] = 1
    for n in range(2, _LONGEST + 1):
        smooth[n] = smooth[n - 1]
        smooth[n, 1:] += smooth[n - 1, :-1]
    derive = np.zeros_like(smooth)
    for n in range(3, _LONGEST + 1):
        for shift, factor in ((0, 1), (1, -2), (2, 1)):
            derive[n, shift:] += factor * smooth[n - 2, : _LONGEST - shift]
    return smooth, derive


_SMOOTH, _DERIVE = _windows()


class Laplacian(Separable):
    """Computes the Laplacian: the sum of the second partial derivatives along the spatial axes, each times its `scale`.

    The derivative along an axis is a convolution with the second difference (1, -2, 1), which is smoothed by (1, 2, 1)
    to the size `window_size`. Along the other axes, it is smoothed with windows of binomial coefficients of size
    `smoothing_size`, which by default is the size of the derivative's window; 1 does not smooth. The border is mirrored
    without its outermost element. Sums are computed in float32.

    Input: one to three spatial axes, channels first, last or absent (HWC, CHW, HW, DHWC, ...), any type but bool.
    Without a layout, all axes are spatial. Frames of a sequence are processed separately.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     x = types.Constant(np.float32([[0, 0, 0], [0, 1, 0], [0, 0, 0]]), layout="HW")
    ...     return fn.laplacian(x, smoothing_size=1)
    >>> pipe().run()[0].at(0).tolist()
    [[0.0, 2.0, 0.0], [2.0, -4.0, 2.0], [0.0, 2.0, 0.0]]
    """

    window_size = PerFrame(
        [int], [3], "Odd size of the derivatives' windows, 3 to 31; one for all axes or one per axis."
    )
    smoothing_size = PerFrame(
        [int], None, "Odd size of the smoothing windows, 1 to 31; one for all axes or one per axis."
    )
    scale = PerFrame([float], [1.0], "Factor of each partial derivative; one for all axes or one per axis.")
    normalized_kernel = Arg(
        bool,
        False,
        "Whether to multiply each derivative by `2^(n + 2 - s)`, where s is the sum of the sizes of its windows and n "
        "the number of spatial axes. Not together with `scale`.",
    )

    def setup(self) -> None:
        if self.values["normalized_kernel"] and "scale" in self.given:
            raise ValueError("`normalized_kernel=True` sets the factors; leave out `scale`")

    def plan(self, a: Arguments, x: Spec, *more: Spec) -> None:
        super().plan(a, x)
        axes = a.n_space
        size = per_axis(a.window_size, "window_size", axes)
        _check("window_size", size, 3)
        a.size = np.repeat(size[:, :, None], axes, axis=2)
        if a.smoothing_size is not None:
            smooth = per_axis(a.smoothing_size, "smoothing_size", axes)
            _check("smoothing_size", smooth, 1)
            a.size = np.where(np.eye(axes, dtype=bool), a.size, smooth[:, None, :])
        derives = np.eye(axes, dtype=bool)[..., None]
        derive, smooth = (windows[known_values(a.size)] for windows in (_DERIVE, _SMOOTH))
        windows = np.where(derives, derive, smooth)
        scale = per_axis(a.scale, "scale", axes)
        if a.normalized_kernel:
            scale = np.exp2(axes + 2.0 - a.size.sum(axis=2))
        is_last = np.arange(axes) == axes - 1
        a.windows = windows * np.where(is_last, scale[..., None], 1)[..., None]


def _check(name: str, size: np.ndarray, least: int) -> None:
    SampleErrors.where(
        ((size < least) | (size > _LONGEST) | (size % 2 == 0)).any(axis=1),
        lambda i: (
            f"`{name}`: {'Smoothing window' if name == 'smoothing_size' else 'Window'} size must be an odd integer "
            f"between {least} and {_LONGEST}, got {size[i].tolist()}"
        ),
    )
