# SPDX-License-Identifier: Apache-2.0
"""Random stretches of frequencies that are masked."""

from ._masks import Mask


class FreqMask(Mask):
    """Masks `num_masks` random ranges of frequencies, as SpecAugment does (Park et al., 2019).

    The width of each mask is uniform in [0, `max_width`], limited to the number of frequencies, and its position is
    uniform among those where it fits. Input: a spectrogram whose layout has the axis "f", such as "ft" (the default for
    two dimensions without a layout) or "tf"; integers, float16 or float32. For spectrograms that were normalized
    before, the default fill value 0 is the mean. `fn.audio.time_mask` masks ranges of time.

    >>> from penstock import fn, pipeline_def, types
    >>> import numpy as np
    >>> @pipeline_def(batch_size=1, seed=1)
    ... def pipe():
    ...     mel = types.Constant(np.ones((80, 100), np.float32), layout="ft")
    ...     return fn.audio.time_mask(fn.audio.freq_mask(mel, max_width=27, num_masks=2), max_width=40)
    >>> pipe().run()[0].at(0).shape
    (80, 100)
    """

    along = "f"
