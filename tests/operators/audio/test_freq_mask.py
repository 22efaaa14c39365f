# SPDX-License-Identifier: Apache-2.0
"""test_time_mask.py tests both operators."""

import numpy as np

from penstock import fn, pipeline_def


def test_only_frequencies_are_masked():
    @pipeline_def(batch_size=32, num_threads=1, seed=1)
    def pipe():
        x = fn.external_source(source=lambda i: [np.ones((20, 7), "f4")] * 32, layout="ft")
        return fn.audio.freq_mask(x, max_width=6, num_masks=2)

    (out,) = pipe().run()
    rows = [out.at(i).sum(axis=1) for i in range(32)]
    assert all(set(r.tolist()) <= {0.0, 7.0} for r in rows) and any((r == 0).any() for r in rows)
