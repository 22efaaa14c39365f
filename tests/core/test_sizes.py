# SPDX-License-Identifier: Apache-2.0
"""What was traced with three numbers of samples is right for any other, or refused."""

from dataclasses import dataclass

import numpy as np
import pytest

from penstock.core import sizes
from penstock.core.program import Runnable
from penstock.core.sizes import ForAnyNumber, Size
from penstock.core.traced import Untraceable
from penstock.core.tracing import IMMEDIATE, Tracer
from program_in_numpy import interpret

SIZES = (6, 7, 13)


@dataclass(frozen=True, eq=False)
class Part:
    shape: tuple
    of: object
    numbers: np.ndarray


def part(n):
    whole = Part((n, 3), None, np.zeros((n, 3)))
    return {"whole": whole, "parts": (whole, Part((2 * n + 1,), whole, np.arange(3))), "name": "x", "f": np.float32(2)}


def test_data_classes_keep_what_they_share():
    fitted = ForAnyNumber([part(n) for n in SIZES], SIZES)
    for n in (0, 1, 2, 6, 40):
        made = fitted.of(n)
        assert made["parts"][1].of is made["parts"][0] is made["whole"]
        assert made["whole"].shape == (n, 3) and made["parts"][1].shape == (2 * n + 1,)
        assert made["whole"].numbers.shape == (n, 3)
    assert repr(fitted.made["parts"][1].shape) == "(2n+1,)" and repr(Size(-1, -1)) == "-n-1"


ARRAYS = {
    "the same for all": lambda n: np.full((n, 2), 3.5, "f4"),
    "a row for each": lambda n: np.tile(np.array([[1, 2]]), (n, 1)),
    "numbers of samples": np.arange,
    "columns of them": lambda n: np.arange(n)[:, None] * 3 + np.array([5, 7]),
    "along another axis": lambda n: np.tile(np.array([[True], [False]]), (1, n)),
    "several for each": lambda n: np.repeat(np.arange(n), 4),
    "several, apart": lambda n: np.concatenate([np.arange(n), np.arange(n) * 2 + 9]),
    "places that move": lambda n: np.arange(n)[:, None] * 8 + np.array([0, 16 * n]),
    "steps that grow": lambda n: np.arange(n) * (8 * n),
    "a number": lambda n: np.array(3 * n + 1),
    "some numbers": lambda n: np.array([[3, n], [n + 1, 0]]),
    "unsigned": lambda n: (np.arange(n, dtype="u8") * 24)[:, None],
    "none": lambda n: np.zeros((0, 3)),
    "nothing of each": lambda n: np.zeros((n, 0), "u1"),
    "one less": lambda n: np.arange(n - 1),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays(name):
    make = ARRAYS[name]
    fitted = ForAnyNumber([(make(n),) for n in SIZES], SIZES)
    for n in (1, 2, 3, 6, 7, 50):
        (made,) = fitted.of(n)
        assert (made.shape, made.dtype) == (make(n).shape, make(n).dtype)
        np.testing.assert_array_equal(made, make(n))
        assert made.flags.c_contiguous


@pytest.mark.parametrize(
    "make",
    [
        lambda n: n * n,
        lambda n: n // 2,
        lambda n: 1.0 / n,
        lambda n: max(n, 10),
        lambda n: "x" * n,
        lambda n: (1,) * n,
        lambda n: {n: 1},
        lambda n: np.arange(n) / n,
        lambda n: np.arange(n) ** 2,
        lambda n: np.random.default_rng(n).random(n),
        lambda n: np.arange(n)[:, None] * np.arange(n),
        lambda n: np.zeros((n, n)) if n != 7 else np.zeros(7),
        lambda n: np.zeros(3, "i4" if n == 7 else "i8"),
        lambda n: np.int64(n),
        lambda n: n if n != 13 else 14,
        lambda n: np.arange(n) + (n == 13),
        lambda n: [1, 2.0][n % 2],
    ],
)
def test_what_is_not_in_proportion_is_refused(make):
    with pytest.raises(Untraceable):
        ForAnyNumber([(make(n),) for n in SIZES], SIZES)


def numbers(n, seed):
    return np.random.default_rng(seed).integers(1, 50, (n, 4))


RULES = {
    "elements": lambda r, x: x[:, :2] * 3 + x[:, 2:],
    "joined": lambda r, x: np.concatenate([x, x[:, ::-1]], axis=1),
    "stacked": lambda r, x: np.stack([x, x + 1]),
    "one behind the other": lambda r, x: np.concatenate([x[:, 0], x[:, 1]]),
    "repeated": lambda r, x: np.repeat(x[:, 0], 3),
    "flat": lambda r, x: x.reshape(-1) + 1,
    "inserted": lambda r, x: np.insert(x, 1, 9, axis=1),
    "padded": lambda r, x: np.pad(x, ((0, 0), (1, 0))),
    "turned": lambda r, x: x.T.copy(),
    "picked": lambda r, x: x[np.arange(len(x))[:, None], np.array([[2, 0]])],
    "of a constant": lambda r, x: x + np.arange(len(x))[:, None],
    "all together": lambda r, x: x - x.max(axis=0),
    "counted": lambda r, x: x + x.sum(),
    "by their number": lambda r, x: x // len(x),
    "written": lambda r, x: _written(r, x),
}


def _written(r, x):
    made = r.zeros((len(x), 5), "f4")
    made[:, 1:] = x
    made[:, 0] = x[:, 3]
    return made


def traced(rule, n):
    tracer = Tracer()
    memory, x = tracer.input(numbers(n, n), "")
    out = tracer.contiguous(rule(tracer, x))
    program = tracer.runnable().program
    return (
        program,
        {v.number: m for v, m in zip(program.values, tracer._memory) if v.kind == "constant"},
        x.value,
        out.value,
    )


@pytest.mark.parametrize("name", RULES)
def test_programs(name):
    fitted = ForAnyNumber([traced(RULES[name], n) for n in SIZES], SIZES)
    for n in (1, 2, 3, 6, 9, 31):
        program, constants, given, out = fitted.of(n)
        memory = [constants.get(v.number, np.zeros(v.shape, v.dtype)) for v in program.values]
        memory[given.number][...] = x = numbers(n, 99 + n)
        by_numpy = interpret(program, memory)
        assert by_numpy is not None and Runnable(program, memory).run()
        want = np.asarray(RULES[name](IMMEDIATE, x))
        for got in (memory, by_numpy):
            np.testing.assert_array_equal(got[out.number].reshape(want.shape), want)


def test_a_number_of_samples_that_is_data_is_refused():
    """Rules that compute with it as with any number, or decide by it."""
    for rule in (
        lambda r, x: x * np.float64(len(x)),
        lambda r, x: x + 1 if len(x) > 10 else x + 2,
        lambda r, x: x[: len(x) // 2 + 1] + 1,
    ):
        with pytest.raises(Untraceable):
            ForAnyNumber([traced(rule, n) for n in SIZES], SIZES)


def test_numbers_that_are_forgotten_are_noticed(monkeypatch):
    """A planted bug: constants have the rows of the first trace, repeated."""
    real = sizes.Series.of
    monkeypatch.setattr(sizes.Series, "of", lambda self, n: np.resize(real(self, 2), real(self, n).shape))
    with pytest.raises((AssertionError, Untraceable)):
        test_arrays("numbers of samples")
