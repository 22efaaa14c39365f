# SPDX-License-Identifier: Apache-2.0
"""Operators called outside of any pipeline: a pipeline that uses their outputs gets its own copies of the nodes."""

import numpy as np
import pytest

from penstock import Pipeline, fn, ops, pipeline_def, types


def batches(*values):
    return [np.float32([v, v + 1]) for v in values]


def first(pipe):
    return [out.as_array().tolist() for out in pipe.run()]


def test_outputs_made_before_the_pipeline_is_entered():
    pipe = Pipeline(2, 1, None)
    data = fn.external_source(source=batches(1, 5))
    pipe.set_outputs(data, data * 2 + fn.cast(data, dtype=types.INT32))
    assert first(pipe) == [[1, 2], [3, 6]]
    assert first(pipe) == [[5, 6], [15, 18]]


def test_a_reader_made_outside_of_the_decorated_function(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}.bin").write_bytes(bytes([i] * 4))
    content, label = fn.readers.file(file_root=str(tmp_path), files=["0.bin", "1.bin", "2.bin"], name="Reader")

    @pipeline_def(batch_size=3, num_threads=1)
    def pipe():
        return label, content

    train, val = pipe(), pipe()
    assert train.epoch_size("Reader") == val.epoch_size("Reader") == 3
    assert first(train) == first(val)


def test_each_pipeline_has_its_own():
    constant = types.Constant(np.float32([1, 10]))
    source = fn.external_source(source=batches(1, 2, 3), cycle=True)
    pipes = [Pipeline(2, 1, None) for _ in range(2)]
    for factor, pipe in enumerate(pipes, 1):
        with pipe:
            pipe.set_outputs(fn.reshape(source, shape=[1]) * constant * factor)
    assert [first(p) for p in pipes] == [[[[1, 10], [2, 20]]], [[[2, 20], [4, 40]]]]
    # The sources are read independently.
    assert first(pipes[0]) == [[[2, 20], [3, 30]]]
    assert first(pipes[1]) == [[[4, 40], [6, 60]]]


def test_constants_of_a_class_style_pipeline():
    class Scaled(Pipeline):
        def __init__(self, factor):
            super().__init__(2, 1, None)
            self.source = ops.ExternalSource(source=batches(1))
            self.factor = types.Constant(np.array([factor]), dtype=types.FLOAT)

        def define_graph(self):
            return fn.reshape(self.source(), shape=[1]) * self.factor

    assert first(Scaled(3)) == [[[3], [6]]]


def test_inputs_are_fed_by_what_was_made_outside():
    named, unnamed = fn.external_source(name="x"), fn.external_source()
    pipe = Pipeline(2, 1, None)
    pipe.set_outputs(named, unnamed)
    pipe.feed_input("x", np.float32([1, 2]))
    pipe.feed_input(unnamed, np.float32([3, 4]))
    assert first(pipe) == [[1, 2], [3, 4]]
    pipe.feed_input(named, np.float32([5, 6]))
    pipe.feed_input(unnamed, np.float32([7, 8]))
    assert first(pipe) == [[5, 6], [7, 8]]


def test_what_goes_on_behind_the_with_block():
    pipe = Pipeline(2, 1, None)
    with pipe:
        data = fn.external_source(source=batches(1))
    pipe.set_outputs(data + 1)
    assert first(pipe) == [[2, 3]]


def test_nodes_of_two_pipelines_do_not_mix():
    one, other = Pipeline(2, 1, None), Pipeline(2, 1, None)
    with one:
        data = fn.external_source(source=batches(1))
    other.set_outputs(data + 1)
    with pytest.raises(ValueError, match="belongs to another pipeline"):
        other.build()


def test_what_is_kept_of_another_definition():
    kept = []
    first(
        pipeline_def(
            lambda: kept.append(fn.external_source(source=batches(1))) or kept[0], batch_size=2, num_threads=1
        )()
    )
    for use in (lambda: fn.copy(kept[0]), lambda: fn.random.uniform(range=kept[0]), lambda: kept[0] + 1):
        with pytest.raises(ValueError, match="kept.append.* belongs to another pipeline"):
            pipeline_def(use, batch_size=2, num_threads=1)()


def test_random_numbers_and_arguments():
    low = fn.random.uniform(range=(1.0, 2.0))
    data = fn.external_source(source=batches(1))
    scaled = fn.brightness(fn.reshape(data, shape=[1, 1, 1], layout="HWC"), brightness=low)
    one, same, other = (Pipeline(2, 1, None, seed=s) for s in (1, 1, 2))
    for pipe in (one, same, other):
        pipe.set_outputs(scaled, low)
    results = [first(p) for p in (one, same, other)]
    assert results[0] == results[1] != results[2]
    values, factors = np.array(results[0][0]).ravel(), np.array(results[0][1])
    np.testing.assert_allclose(values, factors * [1, 2], rtol=1e-6)


def test_a_deep_graph():
    data = fn.external_source(source=batches(0))
    for _ in range(1500):
        data = data + 1
    pipe = Pipeline(2, 1, None)
    pipe.set_outputs(data)
    pipe.build()
    assert len(pipe.definition.nodes) == 1501


def test_copies_on_the_gpu():
    data = fn.external_source(source=batches(1)).gpu()
    pipe = Pipeline(2, 1, 0)
    pipe.set_outputs(data * 2)
    assert pipe.run()[0].as_cpu().as_array().tolist() == [2, 4]


def test_they_are_not_kept():
    """Nodes made outside live only as long as they are referenced."""
    import gc
    import weakref

    class Source:
        def __call__(self):
            return np.zeros((2, 3))

    source = Source()
    alive = weakref.ref(source)
    fn.external_source(source=source).gpu()
    del source
    gc.collect()
    assert alive() is None
