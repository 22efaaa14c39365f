# SPDX-License-Identifier: Apache-2.0
"""Random stretches of time that are masked."""

import numpy as np

from ...core.batch import Spec
from ...core.errors import SampleErrors
from ...core.op import Arguments, PerSample
from ._masks import Mask


class TimeMask(Mask):
    """Masks `num_masks` random ranges of time, as SpecAugment does (Park et al., 2019).

    The width of each mask is uniform in [0, `max_width`], limited to `max_fraction` of the length, and its position is
    uniform among those where it fits. Input: a spectrogram or signal whose layout has the axis "t", such as "ft" (the
    default for two dimensions without a layout), "tf" or "t"; integers, float16 or float32. For spectrograms that were
    normalized before, the default fill value 0 is the mean. `fn.audio.freq_mask` masks ranges of frequencies.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     mel = types.Constant(np.ones((80, 100), np.float32), layout="ft")
    ...     return fn.audio.time_mask(mel, max_width=100, num_masks=2, max_fraction=0.05)
    >>> bool(pipe().run()[0].at(0).sum() >= 80 * 90)
    True
    """

    along = "t"
    max_fraction = PerSample(float, 1.0, "Maximum width of a mask, as a share of the length; in [0, 1].")

    def plan(self, a: Arguments, x: Spec) -> None:
        wrong = ~((a.max_fraction >= 0) & (a.max_fraction <= 1))
        SampleErrors.where(wrong, lambda i: f"max_fraction {a.max_fraction[i]} is not in [0, 1]")
        super().plan(a, x)

    def widest(self, a: Arguments, extent: np.ndarray) -> np.ndarray:
        # Rounds, as float32 stores 0.05 as 0.05000000075, and 0.7 as 0.699999988.
        share = np.floor(a.max_fraction.astype("f8") * 1e6 + 0.5) / 1e6
        return np.minimum(super().widest(a, extent), np.floor(share * extent + 1e-6).astype("i8"))
