# SPDX-License-Identifier: Apache-2.0
"""Valid and invalid expressions in both libraries: the same result, or an exception of DALI's type, not raised
later."""

import operator
import warnings

import numpy as np
import pytest

import penstock
from conformance import oracle

INTEGERS = np.arange(6, dtype="i4").reshape(2, 3)
DATA = [INTEGERS, INTEGERS.astype("f4"), INTEGERS > 2, np.int32(3), np.zeros((4, 2, 3), "u1")]

# Integers, floats and bools of one shape, a scalar, and a larger array.
EXPRESSIONS = {
    "f & x": lambda lib, x, f, b, s, v: f & x,
    "f | 1": lambda lib, x, f, b, s, v: f | 1,
    "x & 1.5": lambda lib, x, f, b, s, v: x & 1.5,
    "x ^ b": lambda lib, x, f, b, s, v: x ^ b,
    "x & True": lambda lib, x, f, b, s, v: x & True,
    "~f": lambda lib, x, f, b, s, v: ~f,
    "b & b": lambda lib, x, f, b, s, v: b & b,
    "b * b": lambda lib, x, f, b, s, v: b * b,
    "b - b": lambda lib, x, f, b, s, v: b - b,
    "b // b": lambda lib, x, f, b, s, v: b // b,
    "-b": lambda lib, x, f, b, s, v: -b,
    "+b": lambda lib, x, f, b, s, v: +b,
    "abs(x)": lambda lib, x, f, b, s, v: abs(x),
    "round(x)": lambda lib, x, f, b, s, v: round(x),
    "x + v": lambda lib, x, f, b, s, v: x + v,
    "x + text": lambda lib, x, f, b, s, v: x + "a",
    "x + None": lambda lib, x, f, b, s, v: x + None,
    "x + b + y": lambda lib, x, f, b, s, v: x + b + v[0, :, :2],
    "x + [x]": lambda lib, x, f, b, s, v: x + [x],
    "x + [1]": lambda lib, x, f, b, s, v: x + [1],
    "x == None": lambda lib, x, f, b, s, v: x == None,  # noqa: E711
    "x ** x": lambda lib, x, f, b, s, v: x**x,
    "x % 2": lambda lib, x, f, b, s, v: x % 2,
    "x << 1": lambda lib, x, f, b, s, v: x << 1,
    "x @ x": lambda lib, x, f, b, s, v: x @ x,
    "divmod(x, 2)": lambda lib, x, f, b, s, v: divmod(x, 2),
    "x // 0": lambda lib, x, f, b, s, v: x // 0,
    "x // 0.0": lambda lib, x, f, b, s, v: x // 0.0,
    "f // 0": lambda lib, x, f, b, s, v: f // 0,
    "x / 0": lambda lib, x, f, b, s, v: x / 0,
    "x // -1": lambda lib, x, f, b, s, v: x // -1,
    "if x": lambda lib, x, f, b, s, v: 1 if x else 2,
    "x and x": lambda lib, x, f, b, s, v: x and x,
    "not x": lambda lib, x, f, b, s, v: not x,
    "0 < x < 3": lambda lib, x, f, b, s, v: 0 < x < 3,
    "int(x)": lambda lib, x, f, b, s, v: int(x),
    "float(x)": lambda lib, x, f, b, s, v: float(x),
    "len(x)": lambda lib, x, f, b, s, v: len(x),
    "for in x": lambda lib, x, f, b, s, v: [y for y in x],
    "1 in x": lambda lib, x, f, b, s, v: 1 in x,
    "x[5]": lambda lib, x, f, b, s, v: x[5],
    "x[0, 0, 0]": lambda lib, x, f, b, s, v: x[0, 0, 0],
    "x[::2]": lambda lib, x, f, b, s, v: x[::2],
    "x[text]": lambda lib, x, f, b, s, v: x["a"],
    "x[1.5]": lambda lib, x, f, b, s, v: x[1.5],
    "x[f]": lambda lib, x, f, b, s, v: x[f],
    "x[x]": lambda lib, x, f, b, s, v: x[x],
    "x[None, 0, 0, 0]": lambda lib, x, f, b, s, v: x[None, 0, 0, 0],
    "x[0] = 1": lambda lib, x, f, b, s, v: operator.setitem(x, 0, 1),
    "sqrt(b)": lambda lib, x, f, b, s, v: lib.math.sqrt(b),
    "sin(text)": lambda lib, x, f, b, s, v: lib.math.sin("a"),
    "clamp(x, 1)": lambda lib, x, f, b, s, v: lib.math.clamp(x, 1),
    "clamp(x, 5, 1)": lambda lib, x, f, b, s, v: lib.math.clamp(x, 5, 1),
    "min(x)": lambda lib, x, f, b, s, v: lib.math.min(x),
    "atan2(b, b)": lambda lib, x, f, b, s, v: lib.math.atan2(b, b),
    "pow(b, 2)": lambda lib, x, f, b, s, v: lib.math.pow(b, 2),
    "fpow(x, 2)": lambda lib, x, f, b, s, v: lib.math.fpow(x, 2),
    "floor(b)": lambda lib, x, f, b, s, v: lib.math.floor(b),
    "x.shape(dtype=FLOAT)": lambda lib, x, f, b, s, v: x.shape(dtype=lib.types.FLOAT),
    "outputs in outputs": lambda lib, x, f, b, s, v: (x, [x]),
    "a number": lambda lib, x, f, b, s, v: 3,
    "a text": lambda lib, x, f, b, s, v: "a",
    "None": lambda lib, x, f, b, s, v: None,
}


class Twice:
    def __init__(self, sample):
        self.sample = sample

    def __call__(self):
        return [self.sample, self.sample]


def outcome(lib, graph):
    """When it fails, the exception's built-in base classes, and the outputs."""
    moment = 0
    try:
        pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
        with pipe, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = graph(lib, *(lib.fn.external_source(source=Twice(x)) for x in DATA))
            pipe.set_outputs(*(out if isinstance(out, tuple) else (out,)))
        moment = 1
        pipe.build()
        moment = 2
        return 3, [], oracle._collect(pipe.run())
    except Exception as e:
        return moment, [c.__name__ for c in type(e).__mro__ if c.__module__ == "builtins"], None


PHRASES = {
    "f & x": "bitwise operator `&` must be of integral type",
    "~f": "bitwise operator `~` must be of integral type",
    "b - b": "arithmetic operator `-` cannot be booleans",
    "b // b": "arithmetic operator `//` cannot be booleans",
    "-b": "arithmetic operator `-` cannot be a boolean",
    "sqrt(b)": "arithmetic operator `sqrt` cannot be a boolean",
    "x + b + y": "Can't broadcast shapes",
    "x // 0": "Integer division by zero",
}


@pytest.mark.parametrize("text", PHRASES)
def test_phrases(text):
    import nvidia.dali as dali

    for lib in (dali, penstock):
        with pytest.raises(Exception, match=PHRASES[text]):
            pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
            with pipe:
                pipe.set_outputs(EXPRESSIONS[text](lib, *(lib.fn.external_source(source=Twice(x)) for x in DATA)))
            pipe.run()


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_expressions(text):
    import nvidia.dali as dali

    when, theirs, want = outcome(dali, EXPRESSIONS[text])
    earlier, ours, got = outcome(penstock, EXPRESSIONS[text])
    if want is None:
        assert theirs[0] in ours and earlier <= when, (when, theirs, earlier, ours)
    else:
        assert got is not None, (earlier, ours)
        assert not oracle.compare(want, got, oracle.Bound(), oracle.Tally())
