# SPDX-License-Identifier: Apache-2.0
"""Datasets of TensorFlow as inputs of pipelines, and pipelines as operators of graphs."""

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow", reason="TensorFlow is not installed: pip install penstock[tf]")

from penstock import fn, pipeline_def, types  # noqa: E402
from penstock.plugin.tf import DALIIterator, DALIIteratorWrapper, DALIRawIterator, serialize_pipeline  # noqa: E402
from penstock.plugin.tf.experimental import DALIDatasetWithInputs, Input  # noqa: E402


@pipeline_def(batch_size=2, num_threads=1)
def fed(batch=None, layout=None, **more):
    return fn.external_source(name="x", batch=batch, layout=layout) + 0


@pipeline_def(batch_size=2, num_threads=1)
def fed_twice():
    return fn.external_source(name="x") + 0, fn.external_source(name="y") + 0


def rows(n):
    return tf.data.Dataset.from_tensor_slices(np.arange(3 * n, dtype="f4").reshape(n, 3))


def ragged():
    """Samples of 1, 2 and 3 rows."""

    def samples():
        for k in (1, 2, 3):
            yield np.full((k, 2), k, "i4")

    return tf.data.Dataset.from_generator(samples, output_signature=tf.TensorSpec((None, 2), tf.int32))


def values(dataset):
    return [x.numpy().tolist() for x in dataset]


def with_input(pipe, dataset, dtype=tf.float32, shapes=None, **kwargs):
    return DALIDatasetWithInputs(pipe, dtype, shapes, input_datasets={"x": dataset}, **kwargs)


def test_samples_become_batches():
    dataset = with_input(fed(), rows(5))
    assert [len(b) for b in values(dataset)] == [2, 2, 1]
    assert np.concatenate(values(dataset)).tolist() == np.arange(15).reshape(5, 3).tolist()


def test_what_is_left_is_dropped_where_batches_have_one_size():
    for dataset in (rows(5), rows(5).map(lambda x: tf.ensure_shape(x, (3,)))):
        assert [len(b) for b in values(with_input(fed(), dataset, shapes=(2, 3)))] == [2, 2]
    unknown = tf.data.Dataset.from_generator(lambda: iter(np.ones((5, 3), "f4")), output_signature=tf.TensorSpec(None))
    assert [len(b) for b in values(with_input(fed(), unknown, shapes=(2, 3)))] == [2, 2]


def test_samples_of_different_shapes():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.pad(fn.external_source(name="x"), axes=(0,), fill_value=-1)

    assert values(with_input(pipe(), ragged(), tf.int32)) == [
        [[[1, 1], [-1, -1]], [[2, 2], [2, 2]]],
        [[[3, 3], [3, 3], [3, 3]]],
    ]


@pytest.mark.parametrize("value", [Input(rows(6).batch(2), batch=True), Input(rows(6).batch(2), batch=None)])
def test_batches(value):
    assert np.concatenate(values(with_input(fed(), value))).tolist() == np.arange(18).reshape(6, 3).tolist()


def test_the_pipeline_says_that_these_are_samples():
    assert [len(b) for b in values(with_input(fed(batch=False), Input(rows(3), batch=None)))] == [2, 1]


def test_strings_become_bytes(files):
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.external_source(name="x")

    for dataset in (tf.data.Dataset.from_tensor_slices(files[:4]).map(tf.io.read_file),):
        got = values(with_input(pipe(), dataset, tf.uint8))
        assert got == [[[0] * 8, [1] * 8], [[2] * 8, [3] * 8]]
        assert values(with_input(pipe(), Input(dataset.batch(2), batch=True), tf.uint8)) == got


def test_a_layout():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return fn.flip(fn.external_source(name="x"), horizontal=1)

    images = tf.data.Dataset.from_tensors(np.arange(6, dtype="u1").reshape(1, 2, 3)).repeat(2)
    for layout, want in (("HWC", [3, 4, 5]), ("CHW", [2, 1, 0])):
        got = values(with_input(pipe(), Input(images, layout=layout), tf.uint8))[0][0]
        assert np.ravel(got)[:3].tolist() == want


def test_one_tuples():
    assert len(values(with_input(fed(), rows(4).map(lambda x: (x,))))) == 2


def test_the_first_input_that_ends_ends_the_dataset():
    inputs = {"x": rows(6), "y": tf.data.Dataset.range(2).repeat()}
    got = list(DALIDatasetWithInputs(fed_twice(), (tf.float32, tf.int64), input_datasets=inputs))
    assert [y.numpy().tolist() for _, y in got] == [[0, 1]] * 3


def test_inputs_beside_sources():
    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        x = fn.external_source(name="x")
        return x + fn.external_source(source=lambda info: np.float32([10 * info.idx_in_epoch] * 3), batch=False)

    assert values(with_input(pipe(), rows(2))) == [[[0, 1, 2], [13, 14, 15]]]


def test_each_iterator_begins_anew_and_epochs_go_on():
    dataset = with_input(fed(), rows(4))
    assert values(dataset) == values(dataset) and len(values(dataset)) == 2
    epochs = with_input(fed(), rows(4), size=4, last_batch_policy="drop")
    assert len(epochs) == 2 and values(epochs) == values(epochs) == values(dataset)


def test_a_function_of_tensorflow_takes_it():
    dataset = with_input(fed(), rows(4), shapes=(None, 3))

    @tf.function
    def total():
        result = 0.0
        for x in dataset:
            result += tf.reduce_sum(x)
        return result

    assert total().numpy() == 66


@pytest.mark.parametrize(
    ("inputs", "error", "text"),
    [
        (None, ValueError, "nothing feeds 'x'; it has nothing"),
        ([], TypeError, "a dictionary"),
        ({3: rows(2)}, TypeError, "a dictionary"),
        ({"x": 3}, TypeError, "datasets or Inputs; got int for 'x'"),
        ({"xx": rows(2)}, ValueError, r"no external source 'xx'.*\['x'\].*Did you mean 'x'"),
        ({"x": tf.data.Dataset.zip(rows(2), rows(2))}, TypeError, "single dense tensors"),
        ({"x": Input(tf.data.Dataset.range(3), batch=True)}, ValueError, "scalars, which are not batches"),
        ({"x": Input(rows(2), layout="C")}, ValueError, "layout 'C', its external source 'H'"),
    ],
)
def test_wrong_inputs(inputs, error, text):
    with pytest.raises(error, match=text):
        DALIDatasetWithInputs(fed(layout="H"), tf.float32, input_datasets=inputs)


def test_more_that_is_wrong():
    with pytest.raises(TypeError, match="takes a tf.data.Dataset; got list"):
        Input([1])

    @pipeline_def(batch_size=2, num_threads=1)
    def pipe():
        return tuple(fn.external_source(name="x", num_outputs=2))

    with pytest.raises(ValueError, match="has num_outputs"):
        DALIDatasetWithInputs(pipe(), input_datasets={"x": rows(2)})
    with tf.Graph().as_default(), pytest.raises(RuntimeError, match="in eager mode"):
        with_input(fed(), rows(2))


class TestOperator:
    @staticmethod
    def pipe(make, n=100):
        return make.source([np.full((2, 1), i, "i4") for i in range(n)], cycle="raise")

    def test_in_a_function(self, make):
        pipe = self.pipe(make)

        @tf.function
        def step():
            (x,) = DALIIterator()(pipeline=pipe, shapes=[(2, 1)], dtypes=[tf.int32])
            assert x.shape == (2, 1)
            return x

        assert [step()[0, 0].numpy() for _ in range(3)] == [0, 1, 2]

    def test_in_a_graph(self, make):
        """Ends with an OutOfRangeError and can be restarted."""
        with tf.Graph().as_default():
            (x,) = DALIIterator()(pipeline=self.pipe(make, 2), shapes=[(2, 1)], dtypes=[tf.int32], device_id=0)
            with tf.compat.v1.Session() as session:
                for _ in range(2):
                    assert [session.run(x)[0, 0] for _ in range(2)] == [0, 1]
                    with pytest.raises(tf.errors.OutOfRangeError):
                        session.run(x)

    def test_eager_calls_go_on(self, make):
        pipe = self.pipe(make)
        call = lambda p: DALIIteratorWrapper(p, dtypes=[tf.int32])[0][0, 0].numpy()
        assert [call(pipe), call(pipe), call(self.pipe(make)), call(pipe)] == [0, 1, 0, 2]

    def test_serialized(self, make):
        text = serialize_pipeline(make.reader())
        arguments = {"shapes": [(2, 8), (2, 1)], "dtypes": [tf.uint8, tf.int32], "num_threads": 2, "batch_size": 2}
        _, label = DALIIterator()(serialized_pipeline=text, **arguments)
        assert label.numpy().tolist() == [[0], [1]]
        _, label = DALIRawIterator()(serialized_pipeline=text, **{**arguments, "batch_size": 3, "shapes": []})
        assert label.numpy().tolist() == [[0], [1], [2]]

    def test_the_batch_size_of_the_shapes(self, make):
        _, label = DALIIterator()(make.reader(), shapes=[(3, 8), ()], dtypes=[tf.uint8, tf.int32])
        assert label.numpy().tolist() == [[0], [1], [2]]

    def test_sparse(self, make):
        @pipeline_def(batch_size=2, num_threads=1)
        def pipe():
            x = fn.external_source(source=lambda i: [np.int32([5, 6]), np.int32([7])])
            return x, fn.reductions.sum(x, dtype=types.INT32)

        x, total = DALIIterator()(pipe(), sparse=[True], shapes=[(), ()], dtypes=[tf.int32, tf.int32])
        assert tf.sparse.to_dense(x).numpy().tolist() == [[5, 6], [7, 0]] and total.numpy().tolist() == [11, 7]
        raw = DALIRawIterator()(serialize_pipeline(dense()), shapes=[()], dtypes=[tf.float32], sparse=[True])
        assert [v.numpy().tolist() for v in raw] == [[[0, 0], [1, 0]], [2, 2], [2, 1]]

    @pytest.mark.parametrize(
        ("kwargs", "error", "text"),
        [
            ({"dtypes": []}, ValueError, "dtypes takes the type of each output"),
            ({"pipeline": None}, ValueError, "either a pipeline or a serialized_pipeline"),
            ({"pipeline": 3}, TypeError, "takes a Pipeline; got int"),
            ({"colour": 1}, TypeError, "colour"),
            ({"dtypes": [tf.int32, tf.int32]}, ValueError, "2 types, but the pipeline has 1 outputs"),
            ({"dtypes": [tf.float32]}, TypeError, "output 0 is of type int32"),
        ],
    )
    def test_wrong_arguments(self, make, kwargs, error, text):
        with pytest.raises(error, match=text):
            DALIIterator()(**{"pipeline": self.pipe(make), "dtypes": [tf.int32], **kwargs})


@pipeline_def(batch_size=2, num_threads=1)
def dense():
    return fn.constant(fdata=2.0, shape=(1,))
