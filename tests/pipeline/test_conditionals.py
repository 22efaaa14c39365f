# SPDX-License-Identifier: Apache-2.0
"""Conditionals on data: each sample takes the branch that plain Python would take for it."""

import random

import numpy as np
import pytest

import conditional_loops as loops
import conditional_programs as programs
from penstock import PipelineError, fn, pipeline_def, types


def run_program(program, n=6, **kwargs):
    def column(values, dtype):
        return fn.external_source(source=lambda i: [np.array(v, dtype) for v in values[:n]])

    def define():
        return program(column(programs.X, "i4"), column(programs.P, "?"), column(programs.Q, "?"))

    pipe = pipeline_def(define, batch_size=n, num_threads=1, enable_conditionals=True, **kwargs)()
    return [[o.at(i).tolist() for i in range(n)] for o in pipe.run()]


def reference(program):
    samples = [program(*xpq) for xpq in zip(programs.X, programs.P, programs.Q)]
    return [list(column) for column in zip(*samples)]


@pytest.mark.parametrize(
    "program", programs.PROGRAMS + programs.BEYOND + loops.PROGRAMS + loops.BEYOND, ids=lambda f: f.__name__
)
def test_as_plain_python(program):
    want = reference(program)
    assert run_program(program) == want
    for n in (1, 2):  # batches of which nothing goes into some branches
        assert run_program(program, n) == [column[:n] for column in want]


# Programs made up at random -------------------------------------------------------------------------------------------


def made_up(seed: int) -> str:
    r = random.Random(seed)

    def number(depth=0):
        kinds = [lambda: r.choice("abx"), lambda: str(r.randint(-3, 3)), lambda: "x"]
        if depth < 2:
            kinds.append(lambda: f"({number(depth + 1)} {r.choice('+-*')} {r.choice('abx')})")
            kinds.append(lambda: f"({number(depth + 1)} if {truth(1)} else {number(depth + 1)} + x * 0)")
        return r.choice(kinds)()

    def truth(depth=0):
        kinds = [lambda: r.choice("pq"), lambda: f"(x {r.choice(['<', '>', '==', '>='])} {r.randint(0, 5)})"]
        if depth < 2:
            kinds.append(lambda: f"({truth(depth + 1)} {r.choice(['and', 'or'])} {truth(depth + 1)})")
            kinds.append(lambda: f"(not {truth(depth + 1)})")
            kinds.append(lambda: f"({r.randint(0, 2)} < a + 0 * x < {r.randint(1, 6)})")
        return r.choice(kinds)()

    def block(indent, depth):
        lines = []
        for _ in range(r.randint(1, 3)):
            kind = r.random()
            if depth < 3 and kind < 0.5:
                lines += [f"{indent}if {truth()}:", *block(indent + "    ", depth + 1)]
                if r.random() < 0.3:
                    lines += [f"{indent}elif {truth()}:", *block(indent + "    ", depth + 1)]
                if r.random() < 0.6:
                    lines += [f"{indent}else:", *block(indent + "    ", depth + 1)]
            elif depth and kind < 0.6:
                lines += [f"{indent}return (a + x * 0, b + x * 0)"]
            elif depth < 2 and kind < 0.7:
                lines += [f"{indent}for i in range(2):", f"{indent}    if x > i + a * 0:", f"{indent}        b = b + a"]
                if r.random() < 0.5:
                    lines += [f"{indent}        if {truth()}:", f"{indent}            continue"]
                    lines += [f"{indent}        a = {number()}", f"{indent}    b = b - a"]
            else:
                lines += [f"{indent}{r.choice('ab')} = {number()}"]
        return lines

    body = "\n".join(block("    ", 0))
    return f"def program(x, p, q):\n    a = b = x\n{body}\n    return a + x * 0, b + x * 0\n"


@pytest.mark.parametrize("seed", range(60))
def test_made_up_programs(seed, tmp_path):
    text = made_up(seed)
    path = tmp_path / "program.py"
    path.write_text(text)
    scope: dict = {}
    exec(compile(text, path, "exec"), scope)
    assert run_program(scope["program"]) == reference(scope["program"]), text


# What goes through the branches ---------------------------------------------------------------------------------------


def images(n=6):
    rng = np.random.default_rng(3)
    return [rng.integers(0, 255, (4 + i, 9 - i, 3), np.uint8, endpoint=True) for i in range(n)]


def test_images_of_different_shapes():
    samples = images()

    @pipeline_def(batch_size=6, num_threads=2, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=lambda i: samples, layout="HWC")
        tall = fn.external_source(source=lambda i: [np.array(s.shape[0] > s.shape[1]) for s in samples])
        if tall:
            y = fn.transpose(x, perm=[1, 0, 2], transpose_layout=False)
            factor = 2
        else:
            y = fn.flip(x)
            factor = 1
        return y, fn.brightness(y, brightness=fn.cast(factor, dtype=types.FLOAT))

    y, bright = pipe().run()
    assert y.layout() == bright.layout() == "HWC"
    for i, s in enumerate(samples):
        is_tall = s.shape[0] > s.shape[1]
        want = s.transpose(1, 0, 2) if is_tall else s[:, ::-1]
        np.testing.assert_array_equal(y.at(i), want)
        np.testing.assert_array_equal(bright.at(i), np.minimum(want.astype(int) * (1 + is_tall), 255))


def test_random_numbers_do_not_depend_on_the_branch():
    @pipeline_def(batch_size=64, num_threads=1, seed=3, enable_conditionals=True)
    def pipe(split):
        noise = fn.random.uniform(range=[0.0, 1.0])
        x = fn.external_source(source=lambda i: [np.zeros(3, "f4")] * 64)
        if not split:
            return fn.random.normal(x, seed=5), noise
        if noise > 0.5:
            y = fn.random.normal(x, seed=5)
        else:
            y = fn.random.normal(x, seed=5)
        return y, noise

    for a, b in zip(pipe(True).run(), pipe(False).run()):
        np.testing.assert_array_equal(a.as_array(), b.as_array())


def test_arguments_are_split_too():
    @pipeline_def(batch_size=6, num_threads=1, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=lambda i: [np.full((1, 1, 3), 10 * k, np.uint8) for k in range(6)], layout="HWC")
        gain = fn.external_source(source=lambda i: [np.float32(k) for k in range(6)])
        if gain > 2:
            x = fn.brightness(x, brightness=gain)
        return x

    out = pipe().run()[0]
    assert [int(out.at(i)[0, 0, 0]) for i in range(6)] == [0, 10, 20, 90, 160, 250]


def test_nothing_is_copied():
    """A branch passes on the memory of its input."""
    samples = [np.zeros((50, 50, 3), np.uint8) + i for i in range(4)]

    @pipeline_def(batch_size=4, num_threads=1, enable_conditionals=True, prefetch_queue_depth=1)
    def pipe():
        x = fn.external_source(source=lambda i: samples, no_copy=True, layout="HWC")
        if fn.external_source(source=lambda i: [np.array(k % 2 == 0) for k in range(4)]):
            y = fn.flip(x)
        else:
            y = x
        return y

    out = pipe().run()[0]
    assert [out.at(i).ctypes.data == samples[i].ctypes.data for i in range(4)] == [False, True, False, True]


# Errors ---------------------------------------------------------------------------------------------------------------


def raises(program, exception, text, when="define", **kwargs):
    with pytest.raises(exception, match=text) as caught:
        run_program(program, **kwargs)
    return str(caught.value)


def test_different_types():
    def program(x, p, q):
        if p:
            y = fn.cast(x, dtype=types.FLOAT)
        else:
            y = x
        return y

    text = raises(
        program, PipelineError, "different types: float32 where the condition is true, int32 where it is false"
    )
    assert "if p:" in text and __file__ in text


def test_a_tensor_as_condition():
    def program(x, p, q):
        if fn.reshape(p, shape=[1]):
            x = x + 1
        return x

    assert "if fn.reshape(p, shape=[1]):" in raises(program, PipelineError, "has to be a scalar of each sample")


def test_words_need_booleans():
    raises(lambda x, p, q: x and p, PipelineError, "the left operand of `and` has to be of type bool; got int32")
    raises(lambda x, p, q: p or 5, PipelineError, "the right operand of `or` has to be of type bool; got int32")


def test_a_variable_of_one_branch():
    def program(x, p, q):
        if p:
            y = x
        else:
            z = x  # noqa: F841
        return y + 1

    raises(program, ValueError, r"the variable 'y' is not assigned in the second branch of the conditional of line \d+")


def test_different_structures():
    def program(x, p, q):
        if p:
            return x, x
        return x

    raises(program, ValueError, "what is returned has different structures .*: a tuple of 2 and data")


@pytest.mark.parametrize("word", ["break", "return x"])
@pytest.mark.parametrize("before", ["", "if q: continue", "if p: continue"])
def test_leaving_a_loop(word, before, tmp_path):
    before = f"        {before}\n" if before else ""
    loop = f"    for i in range(3):\n{before}        if p:\n            x = x + 1\n            {word}\n"
    text = f"def program(x, p, q):\n{loop}    return x\n"
    (tmp_path / "program.py").write_text(text)
    scope: dict = {}
    exec(compile(text, tmp_path / "program.py", "exec"), scope)
    raises(scope["program"], TypeError, f"`{word.split()[0]}` can't leave the loop.* or `continue`")


def test_a_break_after_continue():
    """It would leave the loop for some samples only, though its own condition is a Python value."""

    def program(x, p, q):
        for i in range(4):
            if p:
                continue
            if i == 2:
                break
            x = x + 1
        return x

    raises(program, TypeError, "`break` can't leave the loop")


def test_while_and_assert():
    def loops(x, p, q):
        while p:
            x = x + 1
        return x

    raises(loops, TypeError, "no truth value.*`while`, `assert` and bool\\(\\) do not")

    @pipeline_def(batch_size=2)
    def not_enabled():
        x = fn.random.uniform()
        return x if x > 0 else x

    with pytest.raises(TypeError, match="enable_conditionals=True"):
        not_enabled()


def test_lines_of_errors_in_branches():
    """An error has the user's line, not that of the rewritten code."""

    @pipeline_def(batch_size=2, enable_conditionals=True)
    def pipe():
        x = fn.random.uniform()
        if x > 0.5:
            y = fn.resize(x, sizze=3)
        else:
            y = x
        return y

    with pytest.raises(TypeError, match="Did you mean 'size'") as caught:
        pipe()
    assert "y = fn.resize(x, sizze=3)" in str(caught.value)
    assert any(f.frame.code.name == "pipe" and "sizze" in str(f.statement) for f in caught.traceback)


def test_a_bad_sample_in_a_branch():
    """Its position and source are those in the whole batch, and `on_error` applies to it."""
    kinds = [np.array(k % 2 == 1) for k in range(6)]
    encoded = [np.frombuffer(b"no image at all" if k == 3 else _ppm(k), np.uint8) for k in range(6)]

    @pipeline_def(batch_size=6, num_threads=1, enable_conditionals=True)
    def pipe():
        x = fn.external_source(source=lambda i: encoded)
        if fn.external_source(source=lambda i: kinds):
            y = fn.decoders.image(x)
        else:
            y = fn.flip(fn.decoders.image(x))
        return y

    with pytest.raises(PipelineError, match="Sample 3 of iteration 0"):
        pipe().run()
    skipping = pipe(on_error="skip")
    out = skipping.run()[0]
    assert [int(out.at(i)[0, 0, 0]) for i in range(5)] == [0, 1, 2, 4, 5]
    assert skipping.sample_indices().tolist() == [0, 1, 2, 4, 5]


def _ppm(value: int) -> bytes:
    return b"P6\n2 2\n255\n" + bytes([value]) * 12


@pytest.mark.parametrize(
    "arguments", [{}, {"preserve": True}, {"num_outputs": 0}], ids=["with a result", "preserved", "without outputs"]
)
def test_functions_in_a_branch_whose_results_nobody_uses(arguments):
    """Their condition is kept as long as they need it, though nothing is merged after the branch."""
    seen = []

    @pipeline_def(batch_size=3, num_threads=1, enable_conditionals=True)
    def pipe():
        x = fn.external_source(lambda: [np.int32(1), np.int32(5), np.int32(7)])
        if x > 3:
            if x > 6:
                fn.python_function(x, function=lambda v: seen.append(int(v)) or v, **arguments)
            else:
                fn.python_function(x, function=lambda v: seen.append(-int(v)) or v, **arguments)
        return x

    assert pipe().run()[0].as_array().tolist() == [1, 5, 7]
    assert set(seen) == {-5, 7}  # of this batch and of those made ahead, in any order without the GIL
