# SPDX-License-Identifier: Apache-2.0
"""Debug mode: values are available immediately and are the same as with a graph."""

import numpy as np
import pytest

import conditional_programs as programs
from penstock import PipelineError, fn, pipeline_def, types


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("images")
    for i in range(11):
        pixels = np.random.default_rng(i).integers(0, 255, (9 + i, 12, 3), np.uint8)
        (root / f"{i:02}.ppm").write_bytes(b"P6\n12 %d\n255\n" % (9 + i) + pixels.tobytes())
    return sorted(map(str, root.iterdir()))


def training(files, seen=None):
    coin = fn.random.coin_flip(probability=0.5, dtype=types.BOOL)  # before the reader, whose places it depends on
    if seen is not None:
        seen.append(coin.get().as_array().tolist())
    encoded, labels = fn.readers.file(files=files, shuffle="global", name="reader")
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=8)
    if coin:
        images = fn.flip(images)
        factor = fn.random.uniform(range=[1.0, 2.0])
    else:
        factor = 0.5
    images = fn.brightness(images, brightness=fn.cast(factor, dtype=types.FLOAT))
    return fn.crop_mirror_normalize(images, crop=(6, 6)), labels, images[1:3, ..., ::-1], coin


def batches(pipe, n):
    return [[t.at(i).copy() for t in pipe.run() for i in range(len(t))] for _ in range(n)]


def assert_same(got, want):
    for a, b in zip(got, want):
        assert len(a) == len(b)
        for x, y in zip(a, b):
            np.testing.assert_array_equal(x, y)


def both(define, *args, n=7, **kwargs):
    kwargs = {"batch_size": 4, "num_threads": 2, "seed": 5, **kwargs}
    graph, debug = (pipeline_def(define, enable_conditionals=True, debug=d, **kwargs)(*args) for d in (False, True))
    want = batches(graph, n)
    assert_same(batches(debug, n), want)
    return want


def test_same_as_the_graph(files):
    want = both(training, files)
    seen: list = []
    pipe = pipeline_def(training, enable_conditionals=True, debug=True, batch_size=4, num_threads=1, seed=5)(
        files, seen
    )
    assert_same(batches(pipe, 7), want)
    # The coins of the first batch are drawn again when the reader is called, as they depend on it.
    assert [list(map(bool, (want[k][12 + i] for i in range(4)))) for k in range(7)] == seen[-7:]


@pytest.mark.parametrize("program", programs.PROGRAMS + programs.BEYOND, ids=lambda f: f.__name__)
def test_conditionals(program):
    def column(values, dtype):
        return fn.external_source(source=lambda i: [np.array(v, dtype) for v in values])

    def define():
        return program(column(programs.X, "i4"), column(programs.P, "?"), column(programs.Q, "?"))

    pipe = pipeline_def(define, batch_size=6, enable_conditionals=True, debug=True)()
    want = list(zip(*(program(*xpq) for xpq in zip(programs.X, programs.P, programs.Q))))
    assert [tuple(o.at(i).tolist() for i in range(6)) for o in pipe.run()] == want


def test_values_can_be_looked_at(capsys):
    seen = []

    @pipeline_def(batch_size=2, debug=True)
    def pipe():
        x = fn.external_source(source=lambda i: np.full((2, 2, 2), i, "u1"), layout="HW")
        y = x + 5
        print(y)
        seen.append((y.get().as_array().tolist(), y.shape(), y.dtype, y.layout(), np.array(x.get().at(1)).sum()))
        assert "HW" in repr(y)
        return y[0, 0]

    p = pipe()
    assert [p.run()[0].as_array().tolist() for _ in range(2)] == [[5, 5], [6, 6]]
    assert seen[0] == ([[[5, 5], [5, 5]]] * 2, [(2, 2)] * 2, types.INT32, "HW", 0)
    assert "[5 5]" in capsys.readouterr().out and "DebugPipeline" in repr(p)


def test_the_function_may_change_its_mind():
    """Python's conditions are evaluated for every batch."""
    count = iter(range(9))

    @pipeline_def(batch_size=1, debug=True)
    def pipe():
        x = fn.external_source(source=lambda i: np.float32([[i]]))
        return x * 2 if next(count) % 2 else x * 3

    p = pipe()
    assert [float(p.run()[0].at(0)[0]) for _ in range(4)] == [0, 2, 6, 6]


def test_epochs_feeding_and_ends(files):
    def ending(i):
        if i == 2:
            raise StopIteration
        return np.full((2, 1), i, "i4")

    p = pipeline_def(lambda: fn.external_source(source=ending), batch_size=2, debug=True)()
    for _ in range(2):
        assert [int(p.run()[0].at(0)[0]) for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(StopIteration):
                p.run()
        p.reset()
    fed = pipeline_def(lambda: fn.external_source(name="x") + 1, batch_size=2, debug=True)()
    fed.feed_input("x", np.zeros((2, 1), "i4"))
    assert fed.run()[0].as_array().tolist() == [[1], [1]]
    assert fed.run(x=np.ones((1, 1), "i4"))[0].as_array().tolist() == [[2]]

    reader = pipeline_def(training, enable_conditionals=True, debug=True, batch_size=4, seed=5)(files)
    assert reader.epoch_size("reader") == 11 and reader.num_outputs == 4
    graph = pipeline_def(training, enable_conditionals=True, batch_size=4, seed=5)(files)
    for p in (reader, graph):
        batches(p, 2)
        p.reset()
    assert_same(batches(reader, 4), batches(graph, 4))


def test_errors_are_raised_at_the_call(files):
    @pipeline_def(batch_size=2, debug=True)
    def pipe(bad):
        x = fn.external_source(source=lambda i: [np.zeros((2, 2, 3), "u1")] * 2, layout="HWC")
        return fn.crop(x, crop=[9, 9]) if bad else x

    with pytest.raises(PipelineError, match="fn.crop`"):
        pipe(True).run()
    assert len(pipe(False, debug=False).run()) == 1

    @pipeline_def(batch_size=2, debug=True)
    def unreadable():
        return fn.readers.file(files=["/nowhere/at/all", *files])[1]

    p = unreadable()
    with pytest.raises(PipelineError, match="/nowhere/at/all"):
        p.run()
    assert p.run()[0].as_array().ravel().tolist() == [2, 3]


def test_what_is_not_there():
    p = pipeline_def(lambda: fn.random.uniform(), batch_size=2, debug=True)()
    for method in (p.explain, p.stats, p.serialize, p.checkpoint):
        with pytest.raises(RuntimeError, match="not available in debug mode"):
            method()
    with pytest.raises(ValueError, match="can't be saved in debug mode"):
        pipeline_def(lambda: fn.random.uniform(), batch_size=2, debug=True, enable_checkpointing=True)()
