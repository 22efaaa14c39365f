# SPDX-License-Identifier: Apache-2.0
"""Random permutations of batches."""

import numpy as np

from ...core import kernels
from ...core.batch import Batch
from ...core.op import Arg, Arguments, Seeded
from ...core.rows import reserve

_INT32 = np.dtype("i4")


class BatchPermutation(Seeded):
    """Returns a random permutation of the batch: an index as an int32 scalar for each sample.

    With `no_fixed_points`, no sample gets its own index: the permutation is a single cycle through all samples, and all
    such cycles are equally likely (Sattolo, 1986). With `allow_repetitions`, each index is drawn independently (from
    all but the sample's own with `no_fixed_points`). `no_fixed_points` is ignored for a batch of one sample.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=4, seed=1)
    ... def pipe():
    ...     return fn.batch_permutation()
    >>> sorted(pipe().run()[0].as_array().tolist())
    [0, 1, 2, 3]
    """

    inputs = (0, 0)
    mixes_samples = True
    is_prompt = True
    allow_repetitions = Arg(bool, False, "Whether indices may be repeated and omitted.")
    no_fixed_points = Arg(bool, False, "Whether to exclude each sample's own index.")

    def run(self, a: Arguments) -> Batch:
        out, at = reserve(a.n, _INT32)
        repeats, moves = self.values["allow_repetitions"], self.values["no_fixed_points"]
        kernels.library().batch_permutation(*a.random.columns(), a.n, repeats, moves, at)
        return Batch.from_array(out)
