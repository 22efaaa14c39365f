# SPDX-License-Identifier: Apache-2.0
"""Random orders of the samples of a batch."""

import numpy as np

from ...core.batch import Batch
from ...core.op import Arg, Arguments, Seeded

_HALF = np.uint64(32)


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
        bits = a.random.bits(1)[:, 0]
        if fixed and not self.values["allow_repetitions"]:
            return Batch.from_array(bits.argsort(kind="stable").astype("i4"))
        # The upper half of 32 bits times `below` is a number below it: Lemire, Fast Random Integer Generation in an
        # Interval (2019), without the rejection, which would change a probability by 2^-32 * below at most.
        drawn = bits.astype("u8")
        if self.values["allow_repetitions"]:
            out = (drawn * np.uint64(n if fixed else n - 1) >> _HALF).astype("i4")
            if not fixed:
                out += out >= np.arange(n)
            return Batch.from_array(out)
        # From the back, each exchanged with one before it.
        drawn *= np.arange(n, dtype="u8")
        partners = (drawn >> _HALF).tolist()
        out = list(range(n))
        for i in range(n - 1, 0, -1):
            j = partners[i]
            out[i], out[j] = out[j], out[i]
        return Batch.from_array(np.array(out, "i4"))
