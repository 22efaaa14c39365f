# SPDX-License-Identifier: Apache-2.0
"""Random orders of the samples of a batch."""

import numpy as np

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Seeded


class BatchPermutation(Seeded):
    """Random indices of samples: a permutation of the batch, as an int32 scalar for each sample.

    With `no_fixed_points` no sample gets its own index: the permutation is a single cycle through all samples, all of
    them equally likely (Sattolo, 1986). With `allow_repetitions` each sample gets any index, independently of the
    others (any but its own with `no_fixed_points`). `no_fixed_points` means nothing in a batch of one sample.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=4, seed=1)
    ... def pipe():
    ...     return fn.batch_permutation()
    >>> sorted(pipe().run()[0].as_array().tolist())
    [0, 1, 2, 3]
    """

    inputs = (0, 0)
    mixes_samples = True
    allow_repetitions = Arg(bool, False, "Indices may be repeated and left out.")
    no_fixed_points = Arg(bool, False, "No sample gets its own index.")

    def run(self, a: Arguments) -> Batch:
        n, fixed = a.n, not self.values["no_fixed_points"] or a.n < 2
        drawn = a.random.uniform(1)[:, 0]  # in [0, 1), one a sample
        own = np.arange(n)
        if self.values["allow_repetitions"]:
            below = n if fixed else n - 1
            out = np.minimum((drawn * below).astype("i4"), below - 1)
            out += 0 if fixed else out >= own
            return Batch.from_array(out.astype("i4"))
        # Fisher and Yates, from the back; for a single cycle (Sattolo) an element is never exchanged with itself.
        below = own + (1 if fixed else 0)
        partners = np.minimum((drawn * below).astype("i8"), np.maximum(below - 1, 0)).tolist()
        out = list(range(n))
        for i in range(n - 1, 0, -1):
            j = partners[i]
            out[i], out[j] = out[j], out[i]
        return Batch.from_array(np.array(out, "i4"))
