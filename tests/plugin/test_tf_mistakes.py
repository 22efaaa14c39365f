# SPDX-License-Identifier: Apache-2.0
"""What `DALIDataset` refuses before the first batch, and its warning for outputs on a GPU."""

import inspect
import itertools
import warnings

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install penstock[tf]")

from mistakes import MISTAKES  # noqa: E402

from penstock import fn, pipeline_def  # noqa: E402
from penstock.plugin.tf import DALIDataset  # noqa: E402

TYPES = (tf.uint8, tf.int32)
OURS = inspect.signature(DALIDataset.__init__).parameters


@pytest.mark.parametrize(("kwargs", "error", "text"), [m for m in MISTAKES if m[0].keys() <= OURS.keys()])
def test_mistakes_are_told_before_the_first_batch(make, kwargs, error, text):
    with pytest.raises(error, match=text):
        DALIDataset(make.reader(), TYPES, **kwargs)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"output_dtypes": tf.uint8}, ValueError, "1 types, but the pipeline has 2 outputs"),
        ({"output_dtypes": (tf.float32, tf.int32)}, TypeError, "output 0 is of type uint8, output_dtypes asks for fl"),
        ({"output_dtypes": ("colour", tf.int32)}, TypeError, "a tf.DType or a tuple of them.*'colour'"),
        ({"output_shapes": ((2, 8),)}, ValueError, "a shape for each of the 2 outputs"),
        ({"output_shapes": ((2, 9), None)}, ValueError, r"output 0 has the shape \(2, 8\), .* asks for \(2, 9\)"),
        ({"output_shapes": ((2, "8"), None)}, ValueError, "takes shapes such as"),
        ({"output_shapes": ((3, 8), None)}, ValueError, "batches of 3 in output 0, batch_size is 2"),
        (
            {"output_shapes": ((2, 8), None), "reader_name": "reader", "last_batch_policy": "partial"},
            *(ValueError, "the last batch of an epoch is smaller"),
        ),
        ({"dtypes": TYPES}, ValueError, "old name of output_dtypes"),
        ({"exec_separated": True, "exec_dynamic": True}, ValueError, "exclude each other"),
        ({"batch_size": 0}, ValueError, "batch_size takes a positive integer"),
        ({"prefetch_queue_depth": 0}, ValueError, "prefetch_queue_depth takes a positive integer"),
        ({"input_datasets": {}}, TypeError, "input_datasets"),
        ({"pipeline": 3}, TypeError, "takes a Pipeline; got int"),
    ],
)  # fmt: skip
def test_wrong_arguments(make, arguments, error, text):
    with pytest.raises(error, match=text):
        DALIDataset(**{"pipeline": make.reader(), "output_dtypes": TYPES, **arguments})


def test_old_names(make):
    with pytest.warns(DeprecationWarning, match="output_"):
        assert DALIDataset(make.reader(), dtypes=TYPES, shapes=((2, 8), (2,))).element_spec[1].shape == (2,)


def test_a_ragged_batch(make):
    with pytest.raises(ValueError, match=r"differ in shape.*\(1, 3\), \(2, 3\)"):
        DALIDataset(make.ragged(), tf.int32)


def test_a_source_that_has_to_be_fed():
    @pipeline_def(batch_size=2)
    def pipe():
        return fn.external_source(name="x")

    with pytest.raises(ValueError, match="without a source, 'x'.*DALIDatasetWithInputs"):
        DALIDataset(pipe(), tf.int32)


class TestGpu:
    """On an emulated device: elements are copied through host memory, with a warning."""

    def pipe(self):
        @pipeline_def(batch_size=2, num_threads=1, device_id=0)
        def pipe():
            return fn.external_source(source=lambda i: np.full((2, 3), i, "f4")).gpu()

        return pipe()

    def test_a_dataset_on_the_cpu(self):
        with pytest.raises(
            ValueError, match=r"output 0 of the pipeline on the GPU, and the dataset is on the CPU.*\.cpu"
        ):
            DALIDataset(self.pipe(), tf.float32)

    def test_copies(self):
        with pytest.warns(UserWarning, match="takes a copy of each batch"):
            dataset = DALIDataset(self.pipe(), tf.float32, fail_on_device_mismatch=False)
        assert [x.numpy()[1, 2] for x in itertools.islice(dataset, 3)] == [0, 1, 2]
        with warnings.catch_warnings(), tf.device("/gpu:0"):
            warnings.simplefilter("ignore")
            dataset = DALIDataset(self.pipe(), tf.float32)
        assert next(iter(dataset)).shape == (2, 3)
