# SPDX-License-Identifier: Apache-2.0
"""Inputs are passed by position and arguments by name: accepted forms and types of errors are DALI's."""

import numpy as np
import pytest

PICTURE = np.zeros((4, 4, 3), "u1")


def picture(m):
    return m.fn.external_source(source=lambda i: [PICTURE] * 2, layout="HWC")


CALLS = {
    "resize": lambda m: m.fn.resize(picture(m), 224),
    "crop": lambda m: m.fn.crop(picture(m), [2, 2]),
    "rotate": lambda m: m.fn.rotate(picture(m), 30.0),
    "flip": lambda m: m.fn.flip(picture(m), 1),
    "cast": lambda m: m.fn.cast(picture(m), m.types.FLOAT),
    "mean": lambda m: m.fn.reductions.mean(picture(m), 0),
    "none": lambda m: m.fn.resize(picture(m), None, size=2),
    "three": lambda m: m.fn.normalize(picture(m), 1, 2),
    "no input": lambda m: m.fn.flip(),
    "input None": lambda m: m.fn.flip(None),
    "input by name": lambda m: m.fn.resize(input=picture(m), size=2),
    "a text": lambda m: m.fn.decoders.image("photo.jpg"),
    "reader": lambda m: m.fn.readers.file("photos"),
    "constant": lambda m: m.fn.constant(1),
    "ones": lambda m: m.fn.ones([2]),
    "function": lambda m: m.fn.python_function(picture(m), lambda a: a),
    "class": lambda m: m.ops.Resize(224),
    "class of a reader": lambda m: m.ops.readers.File("photos"),
    "call of a class": lambda m: m.ops.Resize(size=2)(picture(m), 224),
    "no input of a class": lambda m: m.ops.Flip()(),
    # Accepted:
    "source": lambda m: m.fn.external_source(lambda i: [PICTURE] * 2),
    "class of a source": lambda m: m.ops.ExternalSource(lambda i: [PICTURE] * 2)(),
    "Constant": lambda m: m.types.Constant(1, m.types.FLOAT),
    "shape by an input": lambda m: m.fn.random.uniform(picture(m)),
    "slice": lambda m: m.fn.slice(picture(m), [0], [2], axes=[0]),
    "matrix": lambda m: m.fn.warp_affine(picture(m), np.eye(2, 3, dtype="f4")),
}


def outcome(m, call):
    """Shapes and types, or the error."""
    try:
        outputs = m.pipeline_def(lambda: call(m), batch_size=2, num_threads=1, device_id=None)().run()
    except Exception as e:
        return e
    return [(np.asarray(o.at(1)).shape, o.dtype.name) for o in outputs]


@pytest.mark.parametrize("name", CALLS)
def test_as_dali(name):
    import penstock

    theirs = pytest.importorskip("nvidia.dali", reason="the real DALI is not installed")
    want, got = outcome(theirs, CALLS[name]), outcome(penstock, CALLS[name])
    if isinstance(want, Exception):
        assert isinstance(got, type(want)), (want, got)
    else:
        assert got == want
