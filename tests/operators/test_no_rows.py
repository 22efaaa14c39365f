# SPDX-License-Identifier: Apache-2.0
"""Rules with no samples: all samples were bad and are skipped, or no sequence has a frame."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

BOXES, LABELS = np.float32([[0, 0, 0.5, 0.5]]), np.int32([1])
IMAGE = np.zeros((4, 6, 3), "u1")
# Operators and their inputs. `None` stands for the bad input.
CASES = {
    "random_bbox_crop": ([BOXES, LABELS], {}),
    "bbox_rotate": ([BOXES, LABELS], {"angle": 10.0, "input_shape": [4, 6]}),
    "random_crop_generator": ([np.int32([4, 6, 3])], {}),
    "coord_transform": ([np.zeros((3, 1), "f4")], {"M": [1.0, 2.0, 3.0]}),
    "multi_paste": ([IMAGE], {"shapes_rel": 0.5}),
    "crop_mirror_normalize": ([IMAGE], {"mean": [1.0, 2.0, 3.0], "std": [1.0]}),
    "erase": ([IMAGE], {"anchor": [1.0, 1.0], "shape": [2.0, 2.0]}),
    "rotate": ([IMAGE], {"angle": 10.0}),
    "reshape": ([IMAGE, np.int32([6, 4, 3])], {}),
}


@pytest.mark.parametrize("name", CASES)
def test_all_samples_skipped(name):
    inputs, kwargs = CASES[name]

    @pipeline_def(batch_size=2, num_threads=2, on_error="skip")
    def pipe():
        bad = fn.decoders.image(fn.external_source(source=lambda: [np.zeros(9, "u1")] * 2))
        out = getattr(fn, name)(*(fn.external_source(source=lambda i, x=x: [x] * 2) for x in inputs), **kwargs)
        return bad, *(out if isinstance(out, (tuple, list)) else (out,))

    p = pipe()
    assert [len(t) for t in p.run()] == [0] * p.num_outputs


@pytest.mark.parametrize("name", ["rotate", "multi_paste"])
def test_no_frames(name):
    kwargs = CASES[name][1]

    @pipeline_def(batch_size=2, num_threads=2)
    def pipe():
        x = fn.external_source(source=lambda: [np.zeros((0, 4, 6, 3), "u1")] * 2, layout="FHWC")
        return getattr(fn, name)(x, **kwargs)

    (out,) = pipe().run()
    assert [s[0] for s in out.shape()] == [0, 0]
