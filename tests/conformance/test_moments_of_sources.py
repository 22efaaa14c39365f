# SPDX-License-Identifier: Apache-2.0
"""When sources are started, and when and how mistakes in them are reported: the same in both libraries, or earlier."""

from types import SimpleNamespace

import numpy as np
import pytest
from moments import failure

ROWS = np.zeros((2, 1), "f4")
MOMENTS = ("definition", "build", "run", "never")


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as dali

    import penstock

    return tuple(SimpleNamespace(fn=m.fn, ops=m.ops, types=m.types, Pipeline=m.Pipeline) for m in (dali, penstock))


class Counted:
    """An iterable that counts how often it is started."""

    def __init__(self):
        self.starts = 0

    def __iter__(self):
        self.starts += 1
        self.i = 0
        return self

    def __next__(self):
        if self.i == 3:
            raise StopIteration
        self.i += 1
        return np.full((2, 1), self.i, "i4")


def counted_generator():
    source = Counted()

    def generate():
        source.starts += 1
        yield from (np.full((2, 1), i, "i4") for i in range(3))

    return source, generate


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("cycle", [None, "no", "quiet", "raise"])
@pytest.mark.parametrize("kind", ["iterable", "generator function"])
def test_when_iterables_are_started(libs, kind, cycle, depth):
    def of(lib):
        counter, source = counted_generator() if kind != "iterable" else (Counted(),) * 2
        pipe = lib.Pipeline(2, 1, None, prefetch_queue_depth=depth)
        with pipe:
            pipe.set_outputs(lib.fn.external_source(source=counter if kind == "iterable" else source, cycle=cycle))
        seen = [counter.starts]
        pipe.build()
        for _ in range(8):
            try:
                seen.append(pipe.run()[0].as_array().ravel()[0].item())
            except StopIteration:
                seen.append("end")
                pipe.reset()
            seen.append(counter.starts)
        return seen

    theirs, ours = map(of, libs)
    assert ours == theirs


def test_one_iterable_in_two_pipelines(libs):
    """The second definition starts it again."""

    def of(lib):
        source, pipes = Counted(), []
        for _ in range(2):
            pipe = lib.Pipeline(2, 1, None, prefetch_queue_depth=1)
            with pipe:
                pipe.set_outputs(lib.fn.external_source(source=source))
            pipes.append(pipe)
        return source.starts, [pipes[k].run()[0].as_array().ravel()[0].item() for k in (0, 1, 0)]

    theirs, ours = map(of, libs)
    assert ours == theirs == (2, [1, 2, 3])


class Both:
    """Can be iterated and called."""

    def __iter__(self):
        return iter([ROWS] * 5)

    def __call__(self):
        return ROWS + 1


class Yielding:
    def __call__(self):
        yield from (ROWS + i for i in range(3))


class Static:
    @staticmethod
    def __call__(i):
        return ROWS + i


KINDS = {
    "iterable and callable": Both(),
    "object whose call is a generator": Yielding(),
    "object with a static call": Static(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_sources(libs, kind):
    def of(lib):
        pipe = lib.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(lib.fn.external_source(source=KINDS[kind]))
        return [pipe.run()[0].as_array().tolist() for _ in range(2)]

    theirs, ours = map(of, libs)
    assert ours == theirs


def test_outputs_by_number(libs):
    def of(lib):
        pipe = lib.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(*lib.fn.external_source(source=lambda: {1: ROWS + 1, 0: ROWS}, num_outputs=2))
        return [o.as_array().tolist() for o in pipe.run()]

    theirs, ours = map(of, libs)
    assert ours == theirs


class Unstartable:
    def __init__(self, error):
        self.error = error

    def __iter__(self):
        raise self.error


class NoIterator:
    def __iter__(self):
        return 3


def raises(i):
    raise KeyError(i)


# Arguments of external_source.
MISTAKES = {
    "__iter__ raises": dict(source=Unstartable(KeyError("bad"))),
    "__iter__ raises TypeError": dict(source=Unstartable(TypeError("bad"))),
    "__iter__ returns no iterator": dict(source=NoIterator()),
    "neither called nor iterated": dict(source=3),
    "two arguments": dict(source=lambda a, b: ROWS),
    "cycle": dict(source=[ROWS], cycle="sometimes"),
    "cycle of a callable": dict(source=lambda: ROWS, cycle="quiet"),
    "cycle of a generator": dict(source=(ROWS for _ in range(3)), cycle="raise"),
    "cycle without a source": dict(name="x", cycle="quiet"),
    "too few outputs": dict(source=lambda: [ROWS], num_outputs=2),
    "too few outputs, iterated": dict(source=[[ROWS]], num_outputs=2),
    "too few outputs of a sample": dict(source=lambda: (ROWS,), num_outputs=2, batch=False),
    "too few outputs in an array": dict(source=lambda: ROWS[:1], num_outputs=2),
    "no outputs": dict(source=lambda: [], num_outputs=2),
    "a number for outputs": dict(source=lambda: 3, num_outputs=2),
    "None for outputs": dict(source=lambda: None, num_outputs=2),
    "None": dict(source=lambda: None),
    "a string for a sample": dict(source=lambda: "abc", batch=False),
    "too many samples": dict(source=lambda: np.zeros((3, 1))),
    "dimensions differ": dict(source=lambda: [np.zeros(1), np.zeros((1, 1))]),
    "types differ": dict(source=lambda: [np.zeros(1, "i4"), np.zeros(1, "f4")]),
    "dtype": dict(source=lambda: ROWS, dtype=lambda types: types.INT32),
    "ndim": dict(source=lambda: ROWS, ndim=2),
    "ndim is negative": dict(source=lambda: ROWS, ndim=-1),
    "ndim is no number": dict(source=lambda: ROWS, ndim="x"),
    "ndim and layout": dict(source=lambda: ROWS, ndim=2, layout="X"),
    "layout": dict(source=lambda: ROWS, layout="HW"),
    "layout is no string": dict(source=lambda: ROWS, layout=3),
    "source raises": dict(source=raises),
    "unknown argument": dict(source=lambda: ROWS, foo=3),
    "unknown device": dict(source=lambda: ROWS, device="tpu"),
}


def mistake(lib, kwargs):
    """When the error is raised, and the exception."""

    def define():
        dtype = {"dtype": kwargs["dtype"](lib.types)} if "dtype" in kwargs else {}
        return lib.fn.external_source(**{**kwargs, **dtype})

    return failure(lambda: lib.Pipeline(2, 1, None), define)


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(libs, case):
    (when, theirs), (ours_when, ours) = (mistake(lib, dict(MISTAKES[case])) for lib in libs)
    kinds = [c for c in type(theirs).__mro__ if c.__module__ == "builtins"]
    assert when < 3 and isinstance(ours, kinds[0]), (theirs, ours)
    assert ours_when <= when, (MOMENTS[when], MOMENTS[ours_when])


def one_row(info):
    return [ROWS]


def one_sample(info):
    return (ROWS[0],)


@pytest.mark.parametrize("source", [one_row, one_sample])
def test_too_few_outputs_of_workers(libs, source):
    for lib in libs:
        pipe = lib.Pipeline(2, 1, None, py_num_workers=1)
        with pipe:
            how = dict(source=source, num_outputs=2, batch=source is one_row, parallel=True)
            pipe.set_outputs(*lib.fn.external_source(**how))
        pipe.build()
        with pytest.raises(IndexError):
            pipe.run()


def test_two_sources_of_one_name(libs):
    for lib in libs:
        with pytest.raises(RuntimeError):
            pipe = lib.Pipeline(2, 1, None)
            with pipe:
                pipe.set_outputs(lib.fn.external_source(name="x"), lib.fn.external_source(name="x"))
            pipe.build()


def test_type_by_its_number(libs):
    def of(lib):
        pipe = lib.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(lib.fn.external_source(source=lambda: ROWS, dtype=9), lib.types.Constant(3, 7))
        return [(o.as_array().tolist(), int(o.dtype)) for o in pipe.run()]

    theirs, ours = map(of, libs)
    assert ours == theirs


@pytest.mark.parametrize("cycle", [None, "raise"])
def test_iterables_in_debug_mode(libs, cycle):
    """The definition runs for every batch, and the source goes on."""
    from nvidia.dali.pipeline import experimental as theirs

    from penstock.pipeline import experimental

    def of(lib, module):
        source, seen = Counted(), []

        @module.pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
        def define():
            return lib.fn.external_source(source=source, cycle=cycle)

        pipe = define()
        pipe.build()
        for _ in range(7):
            try:
                seen.append(pipe.run()[0].as_array().ravel()[0].item())
            except StopIteration:
                seen.append("end")
                pipe.reset()
        return seen

    assert of(libs[1], experimental) == of(libs[0], theirs)
