# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def batches(i):
    return [np.full((k + 1, 2), 10 * i + k, "i4") for k in range(4)]


def run(indices, **kwargs):
    @pipeline_def(batch_size=4)
    def pipe():
        x = fn.external_source(source=batches, layout="XY")
        given = indices if isinstance(indices, (list, int)) else fn.external_source(source=lambda i: indices(i))
        return fn.permute_batch(x, indices=given)

    return pipe()


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 2, 0]])
@pytest.mark.parametrize("as_data", [False, True])
def test_samples_change_places(indices, as_data):
    pipe = run((lambda i: [np.int32(k) for k in indices]) if as_data else indices)
    for i in range(2):
        (out,) = pipe.run()
        assert out.layout() == "XY"
        for got, k in zip(out, indices):
            np.testing.assert_array_equal(got, batches(i)[k])


def test_with_a_random_permutation():
    @pipeline_def(batch_size=4)
    def pipe():
        order = fn.batch_permutation()
        return fn.permute_batch(fn.external_source(source=batches), indices=order), order

    out, order = pipe().run()
    for got, k in zip(out, np.ravel(order.as_array())):
        np.testing.assert_array_equal(got, batches(0)[k])


def test_behind_and_before_others():
    @pipeline_def(batch_size=4)
    def pipe():
        x = fn.cast(fn.external_source(source=batches), dtype=types.FLOAT)
        return fn.cat(x, fn.permute_batch(x, indices=[1, 0, 3, 2])[:1])

    (out,) = pipe().run()
    for k, got in enumerate(out):
        assert np.asarray(got)[-1, 0] == batches(0)[k ^ 1][0, 0]


@pytest.mark.parametrize(
    "indices, text",
    [
        ([0, 1], "2 indices for a batch of 4"),
        (2, "1 indices for a batch of 4"),
        ([0, 1, 2, 4], r"indices\[3\] is 4; the batch has the samples 0 to 3"),
        ([-1, 1, 2, 3], r"indices\[0\] is -1"),
        (lambda i: [np.int32([1, 2])] * 4, "one number for each sample"),
    ],
)
def test_errors(indices, text):
    with pytest.raises(RuntimeError, match=text):
        run(indices).run()
