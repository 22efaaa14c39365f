# SPDX-License-Identifier: Apache-2.0
"""Programs traced with some numbers give the rule's results for other numbers, natively and in NumPy."""

import numpy as np
import pytest

from penstock.core import traced, tracing
from penstock.core.batch import Batch
from penstock.core.program import COMPUTED
from penstock.core.rows import TENSOR
from penstock.core.traced import Untraceable, is_constant, plain
from penstock.core.tracing import IMMEDIATE, Tracer
from program_in_numpy import BINARY, UNARY, interpret

REAL = np.array([0.0, -0.0, 1.5, -2.5, 0.5, -0.5, 1e30, -1e30, np.inf, -np.inf, np.nan, 3.0])
TYPES = ("u1", "i4", "i8", "u8", "f4", "f8", "?")
ENDS = {"u1": (0, 255), "i4": (-(2**31), 2**31 - 1), "i8": (-(2**63), 2**63 - 1), "u8": (0, 2**64 - 1)}


def numbers(dtype, seed):
    r = np.random.default_rng(seed)
    if dtype == "?":
        return r.integers(0, 2, (6, 4)).astype("?")
    if dtype[0] == "f":
        return r.choice(REAL, (6, 4)).astype(dtype)
    some = [*ENDS[dtype], 0, 1, 2, 7, 100, *([] if dtype[0] == "u" else [-1, -7])]
    return r.choice(np.array(some, dtype), (6, 4))


def check(rule, *makes, exact=True):
    """Traces a rule of (native, columns...) for one batch and runs it for others."""
    tracer = Tracer()
    both = [tracer.input(make(0), "") for make in makes]
    with np.errstate(all="ignore"):
        out = rule(tracer, *(column for _, column in both))
    made = tracer.program()
    for seed in range(5):
        given = [make(seed) for make in makes]
        for (memory, _), values in zip(both, given):
            memory[...] = values
        by_numpy = interpret(made)
        assert made.run() is None and by_numpy is not None, str(made)
        with np.errstate(all="ignore"):
            want = rule(IMMEDIATE, *(g.copy() for g in given))
        assert len(out) == len(want)
        for a, b in zip(out, want):
            b = np.asarray(b)
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            if exact:
                assert plain(a).tobytes() == np.ascontiguousarray(b).tobytes()
            np.testing.assert_array_equal(plain(a), b)
        for value, expected in zip(made.values, by_numpy):
            np.testing.assert_array_equal(value.memory, expected, err_msg=f"{value} of\n{made}")


def defined(ufunc, *types):
    try:
        with np.errstate(all="ignore"):
            return ufunc(*(np.ones(1, t) for t in types)).dtype.str[1:] in ("u1", "i4", "i8", "u8", "f4", "f8", "b1")
    except TypeError:
        return False


def two_are_in_the_vocabulary(name, dtype):
    of_floats = name in ("floor_divide", "remainder") and dtype[0] == "f"
    of_bools = name.startswith(("less", "greater")) and dtype == "?"
    return defined(getattr(np, name), dtype, dtype) and not of_floats and not of_bools


def one_is_in_the_vocabulary(name, dtype):
    if name in ("floor", "ceil", "trunc", "rint", "sqrt") and dtype[0] != "f":  # only for floats
        return False
    return defined(getattr(np, name), dtype) and (dtype != "?" or name in ("logical_not", "invert"))


@pytest.mark.parametrize("dtype, name", [(t, n) for t in TYPES for n in BINARY if two_are_in_the_vocabulary(n, t)])
def test_two_columns(name, dtype):
    ufunc = getattr(np, name)
    # Without negative zeros: NumPy's minimum of -0.0 and 0.0 is either.
    zero = np.dtype(dtype).type(0)  # -0.0 + 0.0 is 0.0
    check(
        lambda r, x, y: (ufunc(x, y), ufunc(x, y[:, :1]), ufunc(x.T, y.T), ufunc(x[::2], y[1::2])),
        *(
            lambda s, k=k: numbers(dtype, k + s) | zero if dtype == "?" else numbers(dtype, k + s) + zero
            for k in (0, 9)
        ),
    )


@pytest.mark.parametrize("dtype, name", [(t, n) for t in TYPES for n in UNARY if one_is_in_the_vocabulary(n, t)])
def test_one_column(name, dtype):
    ufunc = getattr(np, name)
    check(lambda r, x: (ufunc(x), ufunc(x[:, 1]), ufunc(x[1])), lambda s: numbers(dtype, s))


@pytest.mark.parametrize("dtype", [t for t in TYPES if t != "?"])
def test_chosen_and_clipped(dtype):
    one = np.dtype(dtype).type(1)
    check(
        lambda r, x, y: (np.where(x > y, x, y), np.where(x == y, one, x), np.clip(x, one, one * 7)),
        lambda s: numbers(dtype, s),
        lambda s: numbers(dtype, 9 + s),
    )


REDUCTIONS = [(t, n) for t in ("u1", "i4", "i8", "f8", "?") for n in ("sum", "prod", "max", "min", "any", "all")]
REDUCTIONS = [(t, n) for t, n in REDUCTIONS if t != "f8" or n not in ("sum", "prod")]  # these depend on the order


@pytest.mark.parametrize("dtype, name", REDUCTIONS)
def test_reductions(name, dtype):
    check(
        lambda r, x: (getattr(x, name)(), getattr(x, name)(axis=0), getattr(x[:, :3], name)(axis=1, keepdims=True)),
        lambda s: numbers(dtype, s),
        exact=dtype != "f8",
    )


def whole(seed):
    return np.random.default_rng(seed).integers(-50, 50, (6, 4))


def real(seed):
    return np.random.default_rng(seed).normal(size=(6, 4)).astype("f4") * 30


def test_types_meet_as_in_numpy():
    check(
        lambda r, i, f: (i + f, i * 0.5, f * 2, i > 0.5, f + np.float32(1), i // 3, i / 4, f.astype("f8") + 0.1, -f),
        whole,
        real,
    )


def test_elements_put_elsewhere():
    rows, axes = np.arange(6)[:, None], np.array([[2, 0]] * 6)

    def rule(r, x):
        return (
            np.stack([x[:, 0], x[:, 3]], axis=1),
            np.concatenate([x[:, :2], x[:, 1:]], axis=1),
            np.repeat(x[:, None], 3, axis=1),
            np.insert(x, 1, 9, axis=1),
            np.delete(x, 2, axis=1),
            np.pad(x, ((0, 0), (1, 0))),
            np.broadcast_to(x[:, :1], (6, 3)) + 1,
            np.moveaxis(x.reshape(3, 2, 4), 2, 0),
            x.T.reshape(-1),
            x[:, [3, 1]],
            x[rows, axes],
            x[1, 2] + 1,
            x.copy(),
        )

    check(rule, whole)


def test_what_is_written():
    def rule(r, x, f):
        made = r.zeros((6, 5), "f4")
        made[:, :4] = f
        made[:, 4] = x[:, 0]
        made[:, 1:3] -= x[:, 1:3]
        shape = x.copy()
        shape[:, [0, 2]] = x[:, [2, 0]]
        shape[:, 3] += 7
        rows = np.arange(6)[:, None]
        shape[rows, np.array([[1, 2]] * 6)] = f[:, :2].astype("i8")
        return made, shape, np.zeros_like(x), np.full_like(x, 3)

    check(rule, whole, real)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_circles(dtype):
    check(lambda r, f: r.cosine_and_sine(f[:, 0].astype(dtype)), real)


def expected_of(rule, *batches):
    """For which batches a program traced with the first one is valid."""
    tracer = Tracer()
    memory, x = tracer.input(batches[0], "")
    rule(x)
    made = tracer.program()
    agrees = []
    for batch in batches:
        memory[...] = batch
        agrees.append(made.run() is None)
        assert (interpret(made) is not None) == agrees[-1]
    return agrees


@pytest.mark.parametrize(
    "rule",
    [
        lambda x: bool((x > 3).any()),
        lambda x: 1 if (x <= 3).all() else 2,
        lambda x: int(x.max()) if (x > 3).any() else 0,
        lambda x: 5 in x,
        lambda x: f"{(x > 3).sum()}",
        lambda x: [0, 1][(x > 3).any() * 1],
        lambda x: max(x[0], 4) + 1,
        lambda x: (x > 3).tolist(),
        lambda x: np.zeros(9)[(x > 3).nonzero()],
        lambda x: np.array_equal(x, x) and np.array_equal(x // 4, 0 * x),
    ],
)
def test_what_python_learns_is_expected(rule):
    one, alike, other = np.array([1, 2, 3]), np.array([3, 1, 2]), np.array([5, 5, 5])
    agrees = expected_of(rule, one, other)
    assert agrees == [True, False]
    assert expected_of(lambda x: bool((x > 3).any()), one, alike) == [True, True]


def test_sums_so_far():
    check(lambda r, x: [np.cumsum(x[:, 0]), np.cumsum(x[:, 1] - x[:, 2])], lambda seed: numbers("i8", seed) >> 8)


def rows(seed):
    return np.random.default_rng(seed).integers(0, 6, (4, 3))


def test_rows_by_data():
    check(lambda r, x, i: [r.taken(x, i), r.taken(x[:, 1], i)], lambda seed: numbers("i8", seed), rows)
    check(lambda r, i: [r.taken(np.arange(12).reshape(6, 2), i)], rows)


def test_rows_that_are_not_there_end_a_program():
    tracer = Tracer()
    memory, i = tracer.input(np.array([0, 1]), "")
    tracer.taken(np.arange(3), i)
    made = tracer.program()
    for wrong in (-1, 3):
        memory[...] = 0, wrong
        assert made.run()
    memory[...] = 2, 0
    assert made.run() is None


@pytest.mark.parametrize(
    "rule, reason",
    [
        (lambda r, x: np.cumsum(x * 0.5), "np.cumsum is for"),
        (lambda r, x: np.diff(x), "np.diff is not"),
        (lambda r, x: (x * 0.5).sum(), "np.add.reduce of float64"),
        (lambda r, x: np.exp(x), "np.exp is not"),
        (lambda r, x: np.arange(3).__setitem__(0, x[0] + x[1]), "by an if"),
        (lambda r, x: np.arange(3).__setitem__(slice(0, 3), x), "an array of a column"),
        (lambda r, x: r.constant(np.arange(3)).__setitem__(0, x[0]), "writes a column to a constant"),
        (lambda r, x: x.astype("f2"), "does not become float16"),
        (lambda r, x: np.asarray(x), "an array of a column"),
        (lambda r, x: np.ascontiguousarray(x), "an array of a column"),
        (lambda r, x: np.arange(9)[np.stack([x, x])], "an array of a column"),
        (lambda r, x: np.array([x, x]), "an array of a column"),
        (lambda r, x: np.maximum([x[0], x[1]], x[:2]), "a list of columns"),
        (lambda r, x: np.sort(x), "np.sort is not"),
        (lambda r, x: x.argmax(), "'argmax' of a column"),
        (lambda r, x: memoryview(x), "bytes-like"),
    ],
)
def test_what_can_not_be_traced_says_why(rule, reason):
    tracer = Tracer()
    _, x = tracer.input(np.array([1, 2, 3]), "")
    if reason == "by an if":  # reading an element as a number adds a check
        rule(tracer, x)
        assert any(i.function == "same_column" for i in tracer.program().instructions)
        return
    with pytest.raises((Untraceable, TypeError), match=reason):
        rule(tracer, x)


def test_native_code_has_to_give_what_numpy_gave():
    tracer = Tracer()
    _, x = tracer.input(np.array([1.0, 2.0, 3.0]), "")
    made = x * 2
    plain(made)[1] = 5
    with pytest.raises(Untraceable, match="native code gives another result for c2 than NumPy"):
        tracer.program()


def test_constants_stay_constants():
    tracer = Tracer()
    c = tracer.constant(np.arange(6.0).reshape(3, 2))
    made = np.where(c[:, [1, 0]] > 2, np.exp(c), c.sum(axis=1, keepdims=True)).astype("f4")
    assert is_constant(made) and int(made.max()) and bool((made > 0).any())
    assert np.asarray(made).dtype == np.float32
    assert not tracer.program().instructions


def test_what_depends_only_on_shapes_is_computed_again_if_they_change():
    tracer, given = Tracer(), Batch.from_array(np.zeros((2, 3, 5), "u1"))
    memory, place = tracer.input(np.array([given.rows_address], "u8"), "address of rows")
    rows, (shape, _) = tracer.store(np.zeros(2, TENSOR), COMPUTED), tracer.allocate((2, 2), np.dtype("i8"))
    tracer.take_in(place, rows, shape)
    factor, column = tracer.input(np.array([1, 2]), "factor")
    twice, scaled = shape * 2, shape[:, 0] * column
    tracer.expect(shape[:, 1] < 7)
    program = tracer.program()

    def run(array):
        batch = Batch.from_array(array)
        memory[0] = batch.rows_address
        return program.run() is None

    assert run(np.ones((2, 3, 5), "f4")) and plain(twice).tolist() == [[6, 10]] * 2 and plain(scaled).tolist() == [3, 6]
    plain(twice)[...] = 0
    factor[...] = 7
    assert run(np.ones((2, 3, 5), "f4")) and not plain(twice).any() and plain(scaled).tolist() == [21, 21]
    assert run(np.ones((2, 4, 6), "f4")) and plain(twice).tolist() == [[8, 12]] * 2
    for _ in range(2):  # its memory is incomplete after the first one
        assert not run(np.ones((2, 4, 8), "f4"))
    assert run(np.ones((2, 4, 6), "f4")) and plain(twice).tolist() == [[8, 12]] * 2


def test_a_program_can_be_read():
    tracer = Tracer()
    _, x = tracer.input(np.array([[1, 2], [3, 4]]), "extents")
    made = tracer.zeros((2, 2), "f4")
    made[:, 0] = np.maximum(x[:, 1], 3)
    if (made > 7).any():
        raise AssertionError
    tracer.call("take_axes", x, 2, 2, np.array([1], "i4"), 1, tracer.allocate((2, 1), np.dtype("i8"))[1])
    lines = str(tracer.program()).splitlines()
    assert lines[0] == "i0: input int64[2, 2]  extents"
    assert "c4 = maximum(i0[from 8 by [16] as int64[2]], k3)" in lines
    assert "c1[from 0 by [8] as float32[2]] = c4 as float32" in lines
    assert [line for line in lines if line.startswith("check")][0].endswith("== False")
    assert lines[-1].startswith("check take_axes(i0, 2, 2, k") and lines[-1].endswith(") == 0")


def unexpecting(monkeypatch):
    monkeypatch.setattr(Tracer, "expect", lambda self, column: None)


def unconverted(monkeypatch):
    monkeypatch.setattr(Tracer, "_convert", lambda self, x, out: None)


def another_operation(monkeypatch):
    number = tracing.operation_number
    monkeypatch.setattr(tracing, "operation_number", lambda name: number("trunc" if name == "floor" else name))


def a_constant_after_all(monkeypatch):
    monkeypatch.setattr(traced, "is_constant", lambda x: True)
    monkeypatch.setattr(tracing, "is_constant", lambda x: True)


@pytest.mark.parametrize(
    "plant, test, arguments",
    [
        (unexpecting, test_what_python_learns_is_expected, (lambda x: bool((x > 3).any()),)),
        (unconverted, test_types_meet_as_in_numpy, ()),
        (another_operation, test_one_column, ("floor", "f4")),
        (a_constant_after_all, test_two_columns, ("add", "i8")),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_planted_bugs_are_noticed(plant, test, arguments, monkeypatch):
    plant(monkeypatch)
    with pytest.raises((AssertionError, Untraceable)):
        test(*arguments)


@pytest.mark.parametrize("number", [-1, 2**63 + 5, 2**64 - 1])
def test_numbers_of_64_bits_are_arguments_as_they_are(number):
    """Such as the keys of random numbers."""
    tracer = Tracer()
    assert not tracer.call("volumes_below", np.full((1, 1), 3), 1, 1, number)  # where it is negative
    assert tracer.program().run() is None
