# SPDX-License-Identifier: Apache-2.0
"""Mistakes with pipelines, containers, types and functions of numbers: both libraries raise exceptions of the same
type, ours not later; and what is no mistake gives the same."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from test_pipeline_face import fed

ROWS = np.zeros((2, 1), "f4")
PIXELS = np.arange(24, dtype="u1").reshape(2, 3, 4)


@pytest.fixture(scope="module")
def libs():
    import nvidia.dali as theirs
    import nvidia.dali.math as their_math
    import nvidia.dali.tensors as their_tensors

    import penstock
    from penstock import math, tensors

    return tuple(
        SimpleNamespace(
            fn=m.fn,
            types=m.types,
            math=functions,
            tensors=t,
            Pipeline=m.Pipeline,
            pipeline_def=m.pipeline_def,
            newaxis=m.newaxis,
        )
        for m, functions, t in ((theirs, their_math, their_tensors), (penstock, math, tensors))
    )


def pulled(m, *args, **kwargs):
    """In steps: made, built, run."""
    pipe = m.Pipeline(*(args or (2, 1, None)), **kwargs)
    with pipe:
        pipe.set_outputs(m.fn.external_source(source=lambda: ROWS, layout="X"))
    yield
    pipe.build()
    yield
    pipe.run()


def restored(m, **kwargs):
    @m.pipeline_def(batch_size=2, num_threads=1, device_id=None, **kwargs)
    def define():
        return m.fn.external_source(source=lambda i: ROWS)

    pipe = define()
    yield
    pipe.build()
    yield


def parallel(m, **kwargs):
    pipe = m.Pipeline(2, 1, None, **kwargs)
    with pipe:
        pipe.set_outputs(m.fn.external_source(source=[ROWS], parallel=True, batch=True))
    yield
    pipe.build()
    yield


def then(m, use, **kwargs):
    """Uses a built pipeline."""
    pipe = fed(m, **kwargs)
    yield
    use(pipe)


def twice_named(m):
    pipe = m.Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(m.fn.external_source(name="x"), m.fn.external_source(name="x"))
    pipe.build()
    yield


MISTAKES = {
    "run with an unknown input": lambda m: then(m, lambda p: p.run(unknown=ROWS)),
    "run with an unknown input, not ahead": lambda m: then(m, lambda p: p.run(unknown=ROWS), depth=1),
    "unknown input": lambda m: then(m, lambda p: p.feed_input("y", ROWS)),
    "input by a number": lambda m: then(m, lambda p: p.feed_input(3, ROWS)),
    "input by None": lambda m: then(m, lambda p: p.feed_input(None, ROWS)),
    "feed count of an unknown input": lambda m: then(m, lambda p: p.input_feed_count("y")),
    "a name twice": twice_named,
    "batch size of 0": lambda m: pulled(m, 0, 1, None),
    "batch size that is a string": lambda m: pulled(m, "a", 1, None),
    "batch size with a fraction": lambda m: pulled(m, 2.5, 1, None),
    "no threads": lambda m: pulled(m, 2, 0, None),
    "queue of 0": lambda m: pulled(m, prefetch_queue_depth=0),
    "queue that is a string": lambda m: pulled(m, prefetch_queue_depth="a"),
    "queue with a fraction": lambda m: pulled(m, prefetch_queue_depth=2.5),
    "output_dtype is a string": lambda m: pulled(m, output_dtype="float"),
    "output_dtype of NumPy": lambda m: pulled(m, output_dtype=np.float32),
    "output_dtype is no type": lambda m: pulled(m, output_dtype=m.types.NO_TYPE),
    "output_dtype of another output": lambda m: pulled(m, output_dtype=[m.types.FLOAT, m.types.FLOAT]),
    "output_dtype differs": lambda m: pulled(m, output_dtype=m.types.INT32),
    "output_ndim is a string": lambda m: pulled(m, output_ndim="x"),
    "output_ndim is negative": lambda m: pulled(m, output_ndim=[-1]),
    "output_ndim differs": lambda m: pulled(m, output_ndim=2),
    "output_layout is a number": lambda m: pulled(m, output_layout=3),
    "output_layout differs": lambda m: pulled(m, output_layout="Y"),
    "no workers": lambda m: parallel(m, py_num_workers=0),
    "checkpoint that is none": lambda m: restored(m, enable_checkpointing=True, checkpoint=b"foo"),
    "checkpoint of a string": lambda m: restored(m, enable_checkpointing=True, checkpoint="foo"),
    "checkpoints not enabled": lambda m: then(m, lambda p: p.checkpoint()),
    "deserialise what is none": lambda m: then(m, lambda p: m.Pipeline.deserialize(b"foo")),
    "deserialise a string": lambda m: then(m, lambda p: m.Pipeline.deserialize("foo")),
    "deserialise a number": lambda m: then(m, lambda p: m.Pipeline.deserialize(3)),
    "deserialise nothing": lambda m: then(m, lambda p: m.Pipeline.deserialize()),
    "deserialise no file": lambda m: then(m, lambda p: m.Pipeline.deserialize(filename="/nowhere")),
}


def outcome(steps):
    """The number of the step that raises, and the exception."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        n = 0
        try:
            for _ in steps:
                n += 1
        except Exception as e:
            return n, e
    return n, None


def builtin(error):
    return next((c for c in type(error).__mro__ if c.__module__ == "builtins"), type(None))


@pytest.mark.parametrize("case", MISTAKES)
def test_mistakes(libs, case):
    (when, theirs), (ours_when, ours) = (outcome(MISTAKES[case](m)) for m in libs)
    assert theirs is not None and isinstance(ours, builtin(theirs)), (theirs, ours)
    assert ours_when <= when


# Containers and types ------------------------------------------------------------------------------------------------


def tensor(m, *args):
    return m.tensors.TensorCPU(*args)


def batch(m, *args):
    return m.tensors.TensorListCPU(*args)


def ragged(m):
    return batch(m, [tensor(m, np.zeros((1, 2), "f4")), tensor(m, np.ones((3, 2), "f4"))])


USES = {
    "sample that is not there": lambda m: batch(m, PIXELS).at(2),
    "sample before the first": lambda m: batch(m, PIXELS).at(-3),
    "item that is not there": lambda m: batch(m, PIXELS)[2],
    "sample by a string": lambda m: batch(m, PIXELS).at("a"),
    "dimension that is not there": lambda m: tensor(m, PIXELS).squeeze(5),
    "batch of a scalar": lambda m: batch(m, np.array(3)),
    "batch of None": lambda m: batch(m, None),
    "batch of numbers": lambda m: batch(m, [1, 2]),
    "tensor of a number": lambda m: tensor(m, 3),
    "tensor of None": lambda m: tensor(m, None),
    "layout of another length": lambda m: batch(m, PIXELS, "HWC"),
    "types of samples": lambda m: batch(m, [tensor(m, np.zeros(2, t)) for t in ("f4", "i4")]),
    "dimensions of samples": lambda m: batch(m, [tensor(m, np.zeros(s)) for s in (2, (2, 2))]),
    "array of several shapes": lambda m: ragged(m).as_array(),
    "tensor of several shapes": lambda m: ragged(m).as_tensor(),
    "another number of elements": lambda m: batch(m, PIXELS).as_reshaped_tensor([4, 7]),
    "broadcast an array": lambda m: m.tensors.TensorListCPU.broadcast(PIXELS[0], 2).at(1).tolist(),
    "elements of another size": lambda m: tensor(m, PIXELS).reinterpret(m.types.INT32),
    "axis by a number": lambda m: m.newaxis(3),
    "axis of two letters": lambda m: m.newaxis("AB"),
    "repr of a tensor": lambda m: repr(tensor(m, PIXELS[0], "HW")),
    "str of a tensor": lambda m: str(tensor(m, PIXELS[0], "HW")),
    "repr of a batch": lambda m: repr(batch(m, PIXELS, "HW")),
    "no type": lambda m: m.types.to_numpy_type(m.types.DALIDataType.NO_TYPE),
    "type of strings": lambda m: m.types.to_numpy_type(m.types.DALIDataType.STRING),
    "None as a type": lambda m: m.types.to_numpy_type(None),
    "number of a type": lambda m: m.types.to_numpy_type(9),
    "type by its number": lambda m: int(m.types.Constant(3, 7).dtype),
    "shape of a constant": lambda m: m.types.Constant(3).shape,
}


def used(m, use):
    try:
        return use(m)
    except Exception as e:
        return e


@pytest.mark.parametrize("case", USES)
def test_containers_and_types(libs, case):
    theirs, ours = (used(m, USES[case]) for m in libs)
    if isinstance(theirs, Exception):
        assert isinstance(ours, builtin(theirs)), (theirs, ours)
    else:
        assert ours == theirs


# Functions of numbers ------------------------------------------------------------------------------------------------

OPERANDS = {
    "number": (3,),
    "truth": (True,),
    "number of NumPy": (np.float32(2.5),),
    "array": (np.array([1, 4]),),
    "array of floats": (np.float32([1, 4]),),
    "list": ([1, 4],),
    "string": ("a",),
    "nothing": (None,),
    "numbers": (3, 2.5),
    "array and number": (np.array([1, 4]), 3),
    "number and array": (2.5, np.array([1, 4])),
    "arrays": (np.array([1, 4]), np.array([3, 2])),
}


@pytest.mark.parametrize("operands", OPERANDS)
def test_functions_without_data(libs, operands):
    given = OPERANDS[operands]

    def of(m, name):
        pipe = m.Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(getattr(m.math, name)(*given))
        (out,) = pipe.run()
        return out.as_array().tolist(), int(out.dtype)

    for name in ("sqrt", "abs", "floor") if len(given) == 1 else ("min", "pow", "atan2", "fpow"):
        theirs, ours = (used(m, lambda m, n=name: of(m, n)) for m in libs)
        if isinstance(theirs, Exception):
            assert isinstance(ours, builtin(theirs)), (theirs, ours)
        else:
            np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
            assert ours[1] == theirs[1]
