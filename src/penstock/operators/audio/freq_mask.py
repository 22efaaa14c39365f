# SPDX-License-Identifier: Apache-2.0
"""Random stretches of frequencies that are masked."""

from ._masks import Mask


class FreqMask(Mask):
    """Fills `num_masks` random stretches of neighbouring frequencies, as SpecAugment does (Park et al., 2019).

    The width of each is uniform in 0 ... `max_width`, but at most the number of frequencies, and its place uniform
    among those where it fits. Input: a spectrogram with the axis "f" in its layout, such as "ft" (which two dimensions
    without a layout are taken for) or "tf"; integers, float16 or float32. The fill value 0 is the mean where
    spectrograms are normalized before. `fn.audio.time_mask` does the same along time.

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
