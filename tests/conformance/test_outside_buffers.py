# SPDX-License-Identifier: Apache-2.0
"""Foreign data gives the same batches in both libraries, or an error of the same type."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest

ROWS = np.arange(6, dtype="f4").reshape(2, 3)
IMAGE = np.ones((2, 3, 1), "f4")


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as dali
    from nvidia.dali import fn as their_fn
    from nvidia.dali import tensors as their_tensors
    from nvidia.dali import types as their_types

    import penstock
    from penstock import fn, tensors, types

    return (
        SimpleNamespace(fn=their_fn, pipeline_def=dali.pipeline_def, types=their_types, tensors=their_tensors),
        SimpleNamespace(fn=fn, pipeline_def=penstock.pipeline_def, types=types, tensors=tensors),
    )


def capsule(array):
    return array.__dlpack__()


class Taken:
    """Returns the same capsule repeatedly."""

    def __init__(self):
        self.capsule = capsule(ROWS.copy())

    def __call__(self):
        return self.capsule


def tensors(lib, *layouts):
    return [lib.tensors.TensorCPU(ROWS.copy(), layout) for layout in layouts]


SOURCES = {
    "capsule": dict(source=lambda: capsule(ROWS.copy())),
    "capsules": dict(source=lambda: [capsule(np.arange(n, dtype="i4")) for n in (3, 5)]),
    "capsule per sample": dict(source=lambda i: capsule(np.full(2, i.idx_in_batch, "u1")), batch=False),
    "capsule without a copy": dict(source=lambda: capsule(ROWS.copy()), no_copy=True),
    "capsule of columns": dict(source=lambda: capsule(np.zeros((3, 4), "f4").T)),
    "capsule taken": dict(source=Taken()),
    "more outputs": dict(source=lambda: [ROWS, ROWS + 1, ROWS + 2], num_outputs=2),
    "more outputs per sample": dict(source=lambda: (ROWS, ROWS + 1, ROWS + 2), num_outputs=2, batch=False),
    "strings": dict(source=lambda: np.array(["a", "b"])),
    "objects": dict(source=lambda: np.array([None, 1], object)),
    "None": dict(source=lambda: None),
    "memoryviews": dict(source=lambda: [memoryview(row.tobytes()) for row in ROWS]),
    "memoryviews of arrays": dict(source=lambda: [memoryview(row) for row in ROWS]),
    "layout of more": dict(source=lambda: ROWS, layout="HWC"),
    "ndim and layout": dict(source=lambda: ROWS, layout="HWC", ndim=2),
}


def run(pipe, n=2):
    out = []
    for _ in range(n):
        for o in pipe.run():
            samples = [np.array(o.at(i)) for i in range(len(o))]
            out.append((o.layout(), [(s.dtype.name, s.shape, s.tolist()) for s in samples]))
    return out


def outcome(do, *args):
    """The result, or the first built-in base class of the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return do(*args)
        except Exception as e:
            return RuntimeError if isinstance(e, RuntimeError) else type(e)


def pulled(lib, kwargs):
    @lib.pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def define():
        out = lib.fn.external_source(**kwargs)
        return tuple(out) if isinstance(out, list) else out

    return run(define())


@pytest.mark.parametrize("case", SOURCES)
def test_sources(libs, case):
    theirs, ours = (outcome(pulled, lib, dict(SOURCES[case])) for lib in libs)
    assert ours == theirs


FED = {
    "capsule": lambda lib: [(capsule(ROWS.copy()), {})],
    "list of one capsule": lambda lib: [([capsule(ROWS.copy())], {})],
    "batches of several sizes": lambda lib: [(ROWS[:1], {}), (ROWS, {})],
    "tensors": lambda lib: [(tensors(lib, "HW", "HW"), {})],
    "tensors of two layouts": lambda lib: [(tensors(lib, "HW", "WH"), {})],
    "tensors of no layout and one": lambda lib: [(tensors(lib, "", "WH"), {})],
    "another layout": lambda lib: [([IMAGE], {"layout": "HWC"}), ([IMAGE], {"layout": "CHW"})],
    "no layout any more": lambda lib: [([IMAGE], {"layout": "HWC"}), ([IMAGE], {})],
    "a layout that does not fit": lambda lib: [([IMAGE], {"layout": "HW"})],
    "another type": lambda lib: [(ROWS, {}), (ROWS.astype("i4"), {})],
    "more dimensions": lambda lib: [(ROWS, {}), (np.ones((2, 3, 3), "f4"), {})],
    "two types": lambda lib: [([np.ones(3, "i4"), np.ones(3, "f4")], {})],
    "two numbers of dimensions": lambda lib: [([np.ones(3, "f4"), np.ones((3, 1), "f4")], {})],
    "too many": lambda lib: [(np.ones((9, 2), "f4"), {})],
    "a string": lambda lib: [("abc", {})],
    "nothing": lambda lib: [(None, {})],
    "a number": lambda lib: [(3, {})],
}


def fed(lib, case, depth, **kwargs):
    @lib.pipeline_def(batch_size=3, num_threads=1, device_id=None, prefetch_queue_depth=depth, exec_dynamic=depth > 1)
    def define():
        return lib.fn.external_source(name="x", **kwargs)

    pipe, out = define(), []
    pipe.build()
    batches = FED[case](lib)
    for data, more in batches:
        pipe.feed_input("x", data, **more)
        out += run(pipe, 1) if depth == 1 else []
    return out if depth == 1 else run(pipe, len(batches)) if len(batches) >= depth else None


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("case", FED)
def test_fed(libs, case, depth):
    theirs, ours = (outcome(fed, lib, case, depth) for lib in libs)
    assert ours == theirs


@pytest.mark.parametrize("layout", ["CHW", "HW"])
def test_layouts_that_are_not_those_declared(libs, layout):
    for lib in libs:
        with pytest.raises(RuntimeError, match=r"[Ee]xpected data with|describe 3-dimensional data"):
            fed(lib, "another layout", 1, layout=layout)


def second_of_three(lib):
    @lib.pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def define():
        return lib.fn.external_source(source=lambda: [ROWS, ROWS, ROWS], num_outputs=3)[1]

    return define()


def test_an_output_that_nothing_uses_is_told(libs):
    for lib in libs:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            second_of_three(lib).build()
        texts = [str(w.message) for w in told if "produces 3 outputs" in str(w.message)]
        assert len(texts) == 1 and "but the outputs at the indices 0, 2 are not used" in texts[0]
