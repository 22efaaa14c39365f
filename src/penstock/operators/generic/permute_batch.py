# SPDX-License-Identifier: Apache-2.0
"""Permutes the samples of a batch."""

import numpy as np

from ...core.batch import Batch
from ...core.op import Arguments, Operator, PerSample


class PermuteBatch(Operator):
    """Permutes the samples of a batch: sample i of the output is sample `indices[i]` of the input. Samples may be
    omitted and repeated. Nothing is copied, on the GPU either.

    >>> from penstock import fn, pipeline_def
    >>> import numpy as np
    >>> @pipeline_def(batch_size=3)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: np.int32([[10], [20], [30]]))
    ...     return fn.permute_batch(x, indices=[2, 0, 0])
    >>> pipe().run()[0].as_array().ravel().tolist()
    [30, 10, 10]
    """

    by_frame = False
    mixes_samples = regroups = True
    is_prompt = True
    indices = PerSample([int], doc="One index for each sample, as a list or a batch of scalars.")

    def run(self, a: Arguments, x: Batch) -> Batch:
        indices = np.asarray(a.indices)
        if self.values["indices"] is not None:  # a list for the whole batch
            indices = indices[0] if len(indices) else np.zeros(0, "i4")
        elif indices.shape[1] != 1:
            raise ValueError(f"indices needs one number for each sample; got vectors of {indices.shape[1]}")
        indices = indices.ravel()
        if len(indices) != a.n:
            raise ValueError(f"there are {len(indices)} indices for a batch of {a.n} samples")
        wrong = (indices < 0) | (indices >= len(x))
        if wrong.any():
            i = int(wrong.argmax())
            raise ValueError(f"indices[{i}] is {indices[i]}; the batch has the samples 0 to {len(x) - 1}")
        return x.take(indices)
