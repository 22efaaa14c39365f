# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

from penstock import fn, pipeline_def, types


def batches(i):
    return [np.full((k + 1, 2), 10 * i + k, "i4") for k in range(4)]


def run(indices, device="cpu"):
    @pipeline_def(batch_size=4, device_id=None if device == "cpu" else 0)
    def pipe():
        x = fn.external_source(source=batches, layout="XY", device=device)
        given = indices if isinstance(indices, (list, int)) else fn.external_source(source=lambda i: indices(i))
        return fn.permute_batch(x, indices=given)

    return pipe()


@pytest.mark.parametrize("indices", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 2, 2, 0]])
@pytest.mark.parametrize("as_data", [False, True])
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_samples_change_places(indices, as_data, device):
    pipe = run((lambda i: [np.int32(k) for k in indices]) if as_data else indices, device)
    for i in range(2):
        (out,) = pipe.run()
        assert type(out).__name__ == f"TensorList{device.upper()}"
        out = out.as_cpu()
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


def test_on_the_gpu_nothing_is_copied():
    @pipeline_def(batch_size=4, device_id=0)
    def pipe():
        x = fn.cast(fn.external_source(source=batches, device="gpu"), dtype=types.FLOAT)
        y = fn.permute_batch(x, indices=[1, 0, 3, 3])
        return x, y, y + 1, fn.permute_batch(np.int32([7, 8]), indices=[0, 0, 0, 0], device="gpu")

    x, y, z, constant = pipe().run()
    assert [y[i].data_ptr() for i in range(4)] == [x[k].data_ptr() for k in (1, 0, 3, 3)]
    for i, k in enumerate((1, 0, 3, 3)):
        np.testing.assert_array_equal(y.as_cpu().at(i), batches(0)[k])
        np.testing.assert_array_equal(z.as_cpu().at(i), batches(0)[k] + 1)
        assert constant.as_cpu().at(i).tolist() == [7, 8]


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
@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_errors(indices, text, device):
    with pytest.raises(RuntimeError, match=text):
        run(indices, device).run()
