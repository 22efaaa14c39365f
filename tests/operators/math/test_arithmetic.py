# SPDX-License-Identifier: Apache-2.0
import operator

import numpy as np
import pytest

import penstock.math as pm
from penstock import fn, pipeline_def, types

INTEGERS = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8")
TYPES = (*INTEGERS, "f4", "f8", "?")
BINARY = {"+": operator.add, "-": operator.sub, "*": operator.mul, "min": min, "max": max}
COMPARE = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]
BITS = [operator.and_, operator.or_, operator.xor]


def evaluate(function, *batches, layouts=None, num_threads=2):
    """The samples of function(DataNodes of the batches)."""

    @pipeline_def(batch_size=len(batches[0]), num_threads=num_threads)
    def pipe():
        nodes = [
            fn.external_source(source=lambda i, b=b: b, layout=layouts and layouts[j]) for j, b in enumerate(batches)
        ]
        return function(*nodes)

    (out,) = pipe().run()
    return [np.array(out.at(i)) for i in range(len(out))]


def met(*names):
    """The common type, according to DALI's documentation."""
    kinds = [np.dtype(n) for n in names]
    for f in ("f8", "f4"):
        if np.dtype(f) in kinds:
            return np.dtype(f)
    signed = [k.itemsize for k in kinds if k.kind == "i"]
    unsigned = [k.itemsize for k in kinds if k.kind == "u"]
    if not signed and not unsigned:
        return np.dtype("?")
    if not signed:
        return np.dtype(f"u{max(unsigned)}")
    return np.dtype(f"i{min(8, max([*signed, *(2 * u for u in unsigned)]))}")


def values(dtype, shape, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        return rng.normal(0, 50, shape).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    info = np.iinfo(dtype)
    ends = rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    near = rng.integers(max(info.min, -9), 9, shape).astype(dtype)
    return np.where(rng.random(shape) < 0.5, ends, near).astype(dtype)


def exact(x):
    """Converts to Python's unlimited integers."""
    return np.array(x.tolist(), object).reshape(x.shape)


def wrapped(x, dtype):
    if dtype.kind == "f":
        return x.astype(dtype)
    bits = dtype.itemsize * 8
    x = [int(v) % 2**bits for v in x.flat]
    return np.array([v - 2**bits if dtype.kind == "i" and v >= 2 ** (bits - 1) else v for v in x], dtype)


@pytest.mark.parametrize("b", TYPES)
@pytest.mark.parametrize("a", TYPES)
def test_types_and_values(a, b):
    x, y = values(a, 200, 1), values(b, 200, 2)
    t = met(a, b)
    for name, operation in BINARY.items():
        if a == b == "?":
            continue
        ours = getattr(pm, name) if name in ("min", "max") else operation
        (got,) = evaluate(ours, [x], [y])
        assert got.dtype == t, name
        one, two = (np.array(wrapped(exact(v), t)) if t.kind != "f" else v.astype(t) for v in (x, y))
        if t.kind == "f":
            want = {"min": np.minimum, "max": np.maximum}.get(name, operation)(one, two)
        else:
            reference = {"min": np.minimum, "max": np.maximum}.get(name, operation)
            want = wrapped(reference(exact(one), exact(two)), t)
        np.testing.assert_array_equal(got, want, err_msg=name)


@pytest.mark.parametrize("b", TYPES)
@pytest.mark.parametrize("a", TYPES)
def test_comparisons_heed_signs(a, b):
    x, y = values(a, 200, 1), values(b, 200, 2)
    x[:20] = 0
    y[:10] = 0
    for compare in COMPARE:
        (got,) = evaluate(compare, [x], [y])
        if met(a, b).kind == "f":
            want = compare(x.astype(met(a, b)), y.astype(met(a, b)))
        else:
            want = compare(exact(x), exact(y)).astype(bool)
        assert got.dtype == bool
        np.testing.assert_array_equal(got, want, err_msg=compare.__name__)


@pytest.mark.parametrize("a, b", [("u1", "u1"), ("u1", "i2"), ("?", "?"), ("?", "i4"), ("i8", "u4")])
def test_bits(a, b):
    x, y = values(a, 100, 1), values(b, 100, 2)
    for operation in BITS:
        (got,) = evaluate(operation, [x], [y])
        np.testing.assert_array_equal(got, operation(x.astype(met(a, b)), y.astype(met(a, b))))
        assert got.dtype == met(a, b)
    (got,) = evaluate(operator.invert, [x])
    np.testing.assert_array_equal(got, ~x)


def test_shifts():
    x, y = np.array([1, -16, 3, 7], "i4"), np.array([3, 2, 0, 30], "i4")
    np.testing.assert_array_equal(evaluate(operator.lshift, [x], [y])[0], x << y)
    np.testing.assert_array_equal(evaluate(operator.rshift, [x], [y])[0], x >> y)


@pytest.mark.parametrize("a, b", [("u1", "i1"), ("i4", "i4"), ("f4", "u2"), ("f8", "f4"), ("i8", "i8")])
def test_divisions(a, b):
    x, y = values(a, 100, 1), values(b, 100, 2)
    y[y == 0] = 1
    t = met(a, b)
    real = t if t.kind == "f" else np.dtype("f4")
    (got,) = evaluate(operator.truediv, [x], [y])
    np.testing.assert_array_equal(got, x.astype(real) / y.astype(real))
    assert got.dtype == real
    (quotient,) = evaluate(operator.floordiv, [x], [y])
    (rest,) = evaluate(operator.mod, [x], [y])
    if t.kind == "f":  # as in DALI
        np.testing.assert_array_equal(quotient, x.astype(real) / y.astype(real))
        np.testing.assert_allclose(rest, np.fmod(x.astype(t), y.astype(t)))
    else:
        one, two = exact(x.astype(t)), exact(y.astype(t))
        cut = [abs(p) // abs(q) * (1 if (p < 0) == (q < 0) else -1) for p, q in zip(one, two)]
        np.testing.assert_array_equal(quotient, wrapped(np.array(cut, object), t))
        np.testing.assert_array_equal(rest, wrapped(one - np.array(cut, object) * two, t))


def test_division_by_zero():
    x = np.array([5, 0, -5, -(2**31)], "i4")
    assert evaluate(operator.floordiv, [x], [np.full(4, -1, "i4")])[0].tolist() == [-5, 0, 5, -(2**31)]
    assert np.isposinf(evaluate(operator.truediv, [x[:1]], [np.zeros(1, "i4")])[0]).all()


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("at", [0, 1500, 4999])
def test_integers_divided_by_zero(dtype, at):  # the kernel works in blocks of about a thousand
    x, y = np.full(5000, 100, dtype), np.full(5000, 3, dtype)
    assert set(evaluate(operator.floordiv, [x], [y])[0]) == {33}
    y[at] = 0
    for divide in (operator.floordiv, operator.mod):
        with pytest.raises(RuntimeError, match="Integer division by zero"):
            evaluate(divide, [x], [y])
    assert set(evaluate(operator.floordiv, [y], [x])[0]) == {0}
    with pytest.raises(RuntimeError, match="Integer division by zero"):  # one zero for all elements
        evaluate(operator.floordiv, [x], [y[at : at + 1]])


def test_functions_of_numpy_that_are_operators():
    x = np.array([6, 3], "i4")
    assert evaluate(lambda n: np.add(n, 1), [x])[0].tolist() == [7, 4]
    assert evaluate(lambda n: np.subtract(10, n), [x])[0].tolist() == [4, 7]
    assert evaluate(lambda n: np.array([1, 5], "i4") - n, [x])[0].tolist() == [-5, 2]
    assert evaluate(lambda n: np.array([1, 5], "i4") < n, [x])[0].tolist() == [True, False]
    assert evaluate(lambda n: np.negative(n), [x])[0].tolist() == [-6, -3]
    for call in (np.sqrt, np.add.reduce, lambda n: np.add(n, 1, out=np.empty(2))):
        with pytest.raises(TypeError, match=r"np\..* can't be computed on .*penstock.math"):
            evaluate(call, [x])


def test_powers():
    x, y = np.array([7, -2, 2, 3, 2, 0, 0, -1], "i4"), np.array([2, 3, -1, 39, 31, 0, -1, -3], "i4")
    want = [49, -8, 0, int(wrapped(np.array([3**39], object), np.dtype("i4"))[0]), -(2**31), 1, 0, 0]
    assert evaluate(operator.pow, [x], [y])[0].tolist() == want
    (got,) = evaluate(pm.fpow, [np.array([4, 2], "u1")], [np.array([2, 3], "u1")])
    assert got.tolist() == [16, 8] and got.dtype == np.float32
    np.testing.assert_allclose(evaluate(lambda x: x**0.5, [np.array([4.0, 2.0])])[0], np.sqrt([4, 2]), rtol=1e-15)


@pytest.mark.parametrize(
    "name",
    "fabs sqrt cbrt exp log log2 log10 floor ceil sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh".split(),
)
def test_functions(name):
    numpy_name = {"asin": "arcsin", "acos": "arccos", "atan": "arctan"}.get(name, name).replace("asinh", "arcsinh")
    reference = getattr(np, numpy_name.replace("acosh", "arccosh").replace("atanh", "arctanh"))
    for dtype in ("f4", "f8", "i2", "u1"):
        x = np.linspace(-2, 4, 101).astype(dtype) if dtype[0] == "f" else np.arange(50).astype(dtype)
        real = x.dtype if dtype[0] == "f" else np.dtype("f4")
        (got,) = evaluate(getattr(pm, name), [x])
        with np.errstate(all="ignore"):
            want = reference(x.astype("f8"))
        assert got.dtype == real
        np.testing.assert_allclose(got, want.astype(real), rtol=4 * np.finfo(real).eps, atol=1e-30)


def test_other_functions():
    x = np.array([-128, -3, 0, 5], "i1")
    np.testing.assert_array_equal(evaluate(abs, [x])[0], np.abs(x))
    np.testing.assert_array_equal(evaluate(pm.abs, [x])[0], np.abs(x))
    np.testing.assert_array_equal(evaluate(operator.neg, [x])[0], -x)
    np.testing.assert_array_equal(evaluate(operator.pos, [x])[0], x)
    np.testing.assert_allclose(evaluate(pm.rsqrt, [np.array([4, 0.25], "f4")])[0], [0.5, 2], rtol=1e-6)
    y, z = np.array([1, -1, 1, -1], "f4"), np.array([1, 1, -1, -1], "f4")
    np.testing.assert_allclose(evaluate(pm.atan2, [y], [z])[0], np.arctan2(y, z), rtol=1e-6)
    np.testing.assert_array_equal(evaluate(lambda x: pm.clamp(x, -5, 3), [x])[0], np.clip(x.astype("i4"), -5, 3))


@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", "f8", "?"])
def test_constants(dtype):
    x = values(dtype, (5, 7), 3)
    # On the left, NumPy scalars count as Python numbers if they fit into 32 bits.
    constants = ((3, "i4", "i4"), (-2.5, "f4", "f4"), (np.uint8(9), "u1", "i4"), (np.float64(0.1), "f8", "f4"))
    for c, right, left in (*constants, (np.int64(2**40), "i8", "i8"), (np.int64(2), "i8", "i4")):
        for expression, t in ((lambda x, c: x - c, right), (lambda x, c: c - x, left), (lambda x, c: c < x, left)):
            both = met(dtype, t)
            one, two = wrapped(exact(x), both).reshape(x.shape), np.array(c).astype(t).astype(both)
            (got,) = evaluate(lambda x, c=c, e=expression: e(x, c), [x])
            with np.errstate(over="ignore"):
                want = expression(one, two)
            np.testing.assert_array_equal(got, want)
            assert got.dtype == want.dtype
    if dtype != "?":
        np.testing.assert_array_equal(evaluate(lambda x: x + True, [x])[0], x + x.dtype.type(1))


SHAPES = [
    ((4, 5, 3), (3,)),
    ((4, 5, 3), (1, 1, 3)),
    ((4, 5, 3), (4, 1, 1)),
    ((4, 5, 3), ()),
    ((), (4, 5, 3)),
    ((4, 1, 3), (1, 5, 1)),
    ((5, 1), (4, 5, 3)),
    ((0, 5, 3), (1, 5, 3)),
    ((2, 1, 4, 1), (1, 3, 1, 5)),
    ((600, 4, 3), (4, 3)),
    ((7, 300, 3), (7, 1, 3)),
    ((300, 7), (7,)),
    ((3000,), (1,)),
    ((40, 1500), (1500,)),
    ((40, 1500), (40, 1)),
    ((), ()),
]


@pytest.mark.parametrize("one, other", SHAPES)
@pytest.mark.parametrize("dtypes", [("f4", "f4"), ("u1", "f4"), ("i2", "u1")])
def test_broadcasting(one, other, dtypes):
    x, y = values(dtypes[0], one, 1), values(dtypes[1], other, 2)
    t = met(*dtypes)
    for a, b in ((x, y), (y, x)):
        (got,) = evaluate(operator.sub, [a], [b])
        np.testing.assert_array_equal(got, a.astype(t) - b.astype(t))
    (got,) = evaluate(lambda a, b: (a < b) | (a == b), [x], [y])
    np.testing.assert_array_equal(got, x <= y)


def test_two_operands_that_repeat_differently():
    x, y = values("f4", (900, 2), 1)[:1], values("f4", (900, 1), 2)
    np.testing.assert_array_equal(evaluate(operator.add, [x], [y])[0], x + y)
    row, rows = values("f4", (6,), 1), values("f4", (500, 1, 3), 2)
    np.testing.assert_array_equal(
        evaluate(lambda a, b: a.__add__(b), [row.reshape(2, 3)], [rows])[0], row.reshape(2, 3) + rows
    )


def test_ragged_batches_and_threads():
    shapes = [(5, 4, 3), (1, 1, 3), (0, 4, 3), (333, 17, 3)]
    x, y = [values("u1", s, i) for i, s in enumerate(shapes)], [values("f4", (3,), i) for i in range(4)]
    one = evaluate(lambda a, b: a * b + 1, x, y, num_threads=1)
    many = evaluate(lambda a, b: a * b + 1, x, y, num_threads=4)
    for a, b, p, q in zip(one, many, x, y):
        np.testing.assert_array_equal(a, p * q + np.float32(1))
        np.testing.assert_array_equal(a, b)


def test_arrays_are_operands():
    x = values("u1", (4, 3))
    add = np.array([1, 2, 3], "f4")
    np.testing.assert_array_equal(evaluate(lambda a: a + add, [x])[0], x + add)
    np.testing.assert_array_equal(evaluate(lambda a: add - a, [x])[0], add - x)


def test_layouts():
    @pipeline_def(batch_size=1)
    def pipe():
        x = fn.external_source(source=lambda i: [np.zeros((4, 5, 3), "f4")], layout="HWC")
        c = fn.external_source(source=lambda i: [np.zeros(3, "f4")], layout="C")
        return x + c, c + x, x * types.Constant([1.0, 2.0, 3.0]), -x, x > 1

    assert [out.layout() for out in pipe().run()] == ["HWC"] * 5


def test_results_are_arguments():
    @pipeline_def(batch_size=2)
    def pipe():
        x = fn.external_source(source=lambda i: [np.full((2, 2, 3), 10, "u1")] * 2, layout="HWC")
        b = fn.external_source(source=lambda i: [np.float32(1), np.float32(2)])
        return fn.brightness(x, brightness=b * 2 + 1)

    assert [int(pipe().run()[0].at(i)[0, 0, 0]) for i in range(2)] == [30, 50]


def test_windows_pass_through():
    x = values("u1", (20, 30, 3))

    def cut(a):
        return fn.crop(a * 2 + 1, crop=(5, 6), crop_pos_x=0.5, crop_pos_y=0.25)

    def cut_before(a):
        return fn.crop(a, crop=(5, 6), crop_pos_x=0.5, crop_pos_y=0.25) * 2 + 1

    np.testing.assert_array_equal(evaluate(cut, [x], layouts=["HWC"])[0], evaluate(cut_before, [x], layouts=["HWC"])[0])


@pytest.mark.parametrize(
    "function, exception, text",
    [
        (lambda x, y, b, h: h + 1, RuntimeError, "arithmetic on float16 is not supported"),
        (lambda x, y, b, h: b + b, RuntimeError, r"operator `\+` cannot be booleans"),
        (
            lambda x, y, b, h: x & 2.0,
            RuntimeError,
            "bitwise operator `&` must be of integral type; got uint8 and float32",
        ),
        (lambda x, y, b, h: x + y, RuntimeError, r"shapes \[4, 3\] and \[4\]: they differ in an extent that is not 1"),
        (lambda x, y, b, h: x + 2**31, OverflowError, "Integer constant 2147483648 out of range for int32"),
        (lambda x, y, b, h: pm.sqrt(4.0), TypeError, "'sqrt' needs a DataNode, a list or an array among its operands"),
        (lambda x, y, b, h: fn.arithmetic(x, operation="plus"), ValueError, "there is no operation 'plus'"),
        (lambda x, y, b, h: fn.arithmetic(x, operation="add"), ValueError, "operation 'add' takes 2 operands"),
        (lambda x, y, b, h: bool(x == y), TypeError, "no truth value"),
    ],
)
def test_errors(function, exception, text):
    samples = [np.ones((4, 3), "u1")], [np.ones(4, "u1")], [np.ones(4, "?")], [np.ones(4, "f2")]
    with pytest.raises(exception, match=text):
        evaluate(function, *samples)
