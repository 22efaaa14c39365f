# SPDX-License-Identifier: Apache-2.0
"""Transforms that translate."""

import numpy as np

from ...core.op import Arguments, PerFrame
from ._transform import Transform


class Translation(Transform):
    """Returns a transform (d, d + 1), float32, that adds `offset`; d is the number of its values.

    With an input, a transform of the same shape, the output applies first that one, then the translation. If the input
    is a sequence of transforms, or an argument has one value per frame, the output is a sequence.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=1)
    ... def pipe():
    ...     return fn.transforms.translation(offset=[10, 20])
    >>> pipe().run()[0].at(0).tolist()
    [[1.0, 0.0, 10.0], [0.0, 1.0, 20.0]]
    """

    deprecated = ("TransformTranslation",)
    offset = PerFrame([float], doc="The offset that is added, one value per dimension.")

    def matrix(self, a: Arguments, dims: int | None) -> np.ndarray:
        n, d = a.offset.shape
        if d == 0:
            raise ValueError("`offset` needs one value per dimension, got none")
        linear = np.broadcast_to(np.eye(d), (n, d, d))
        return np.concatenate([linear, a.offset.astype("f8")[..., None]], axis=2)
