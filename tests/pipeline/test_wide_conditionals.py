# SPDX-License-Identifier: Apache-2.0
"""Conditionals with many branches, on images and sequences, on both devices. The reference is computed without
conditionals, with all branches for every sample."""

import numpy as np
import pytest

from penstock import PipelineError, fn, pipeline_def, types

BATCHES = [[0, 1, 2, 3, 4, 5, 3], [2] * 7, [5, 5, 0, 5, 5, 5, 5], [6, 7, -1, 6, 9, 8, 7], [4]]
SIZES = [(9, 12), (5, 5), (12, 7), (6, 8), (5, 16), (8, 6), (7, 9)]


def image(i, k, n_frames=None):
    rng = np.random.default_rng(100 * i + k)
    return rng.integers(0, 256, (() if n_frames is None else (n_frames,)) + (*SIZES[k], 3), np.uint8)


def sequence(i, k):
    return image(i, k, 1 + (i + k) % 3)


BRANCHES = [
    lambda x: fn.flip(x),
    lambda x: fn.brightness(x, brightness=0.5),
    lambda x: fn.rotate(x, angle=90.0),
    lambda x: fn.resize(x, size=[10, 11]),
    lambda x: fn.crop(x, crop=(5, 4)),
    lambda x: fn.cast(x + 7, dtype=types.UINT8),
    lambda x: x,
]


def chain(x, c):
    """Seven branches."""
    if c == 0:
        y = BRANCHES[0](x)
    elif c == 1:
        y = BRANCHES[1](x)
    elif c == 2:
        y = BRANCHES[2](x)
    elif c == 3:
        y = BRANCHES[3](x)
    elif c == 4:
        y = BRANCHES[4](x)
    elif c == 5:
        y = BRANCHES[5](x)
    else:
        y = BRANCHES[6](x)
    return y


def returns(x, c):
    """The same with return statements."""
    if c == 0:
        return BRANCHES[0](x)
    if c == 1:
        return BRANCHES[1](x)
    if c == 2:
        return BRANCHES[2](x)
    if c == 3:
        return BRANCHES[3](x)
    if c == 4:
        return BRANCHES[4](x)
    if c == 5:
        return BRANCHES[5](x)
    return x


def tree(x, c):
    """The same with a binary tree of conditions."""
    if c < 3:
        if c < 0:
            y = x
        elif c < 1:
            y = BRANCHES[0](x)
        else:
            if c == 1:
                y = BRANCHES[1](x)
            else:
                y = BRANCHES[2](x)
    else:
        if c > 5:
            y = x
        else:
            if c == 3:
                y = BRANCHES[3](x)
            elif c == 4:
                y = BRANCHES[4](x)
            else:
                y = BRANCHES[5](x)
    return y


def ternaries(x, c):
    b = BRANCHES
    first = b[0](x) if c == 0 else b[1](x) if c == 1 else b[2](x)
    second = (b[3](x) if c == 3 else b[4](x)) if 3 <= c < 5 else (b[5](x) if c == 5 else x)
    return first if 0 <= c < 3 else second


def loop(x, c):
    y = x
    for k in range(6):
        if c == k:
            y = BRANCHES[k](x)
    return y


def run(define, device, source, layout, converts=True):
    kwargs = {"batch_size": 7, "num_threads": 2, "device_id": 0 if device == "gpu" else None}

    def samples(i):  # also asked for batches ahead that nobody takes
        i %= len(BATCHES)
        return [source(i, k) for k in range(len(BATCHES[i]))]

    @pipeline_def(enable_conditionals=converts, **kwargs)
    def pipe():
        x = fn.external_source(source=samples, layout=layout)
        c = fn.external_source(source=lambda i: [np.int32(c) for c in BATCHES[i % len(BATCHES)]])
        return define(x.gpu() if device == "gpu" else x, c)

    p, out = pipe(), []
    for _ in BATCHES:
        outputs = [o.as_cpu() if hasattr(o, "as_cpu") else o for o in p.run()]
        out.append([[np.array(o.at(i)) for i in range(len(o))] for o in outputs])
    return out


@pytest.fixture(scope="module")
def of_all_branches():
    """The result of each branch for each sample."""
    made = {}

    def get(source, layout, device):
        key = source, device
        if key not in made:
            made[key] = run(lambda x, c: tuple(b(x) for b in BRANCHES), device, source, layout, False)
        return made[key]

    return get


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("source, layout", [(image, "HWC"), (sequence, "FHWC")], ids=["image", "sequence"])
@pytest.mark.parametrize("define", [chain, returns, tree, ternaries, loop], ids=lambda f: f.__name__)
def test_each_sample_goes_its_own_way(define, source, layout, device, of_all_branches):
    want = of_all_branches(source, layout, device)
    for i, (got,) in enumerate(run(define, device, source, layout)):
        for k, choice in enumerate(BATCHES[i]):
            branch = choice if 0 <= choice < 6 else 6
            np.testing.assert_array_equal(got[k], want[i][branch][k], err_msg=f"batch {i}, sample {k}")


@pytest.mark.parametrize("source, layout", [(image, "HWC"), (sequence, "FHWC")], ids=["image", "sequence"])
def test_regions_behind_many_branches(source, layout):
    """A crop after the branches, and one more operator."""

    def behind(x):
        return fn.brightness(fn.crop(x, crop=(3, 3)), brightness=1.5)

    got = run(lambda x, c: behind(chain(x, c)), "cpu", source, layout)
    want = run(lambda x, c: tuple(behind(b(x)) for b in BRANCHES), "cpu", source, layout, False)
    for i, choices in enumerate(BATCHES):
        for k, c in enumerate(choices):
            np.testing.assert_array_equal(got[i][0][k], want[i][c if 0 <= c < 6 else 6][k])


# Laziness -------------------------------------------------------------------------------------------------------------


def seen_by(expression):
    """The samples that a Python function is called with in the right operand of `and` or `or`."""
    seen = []

    def look(k):
        seen.append(int(k))
        return np.array(k % 2 == 0)

    @pipeline_def(batch_size=6, num_threads=1, prefetch_queue_depth=1, enable_conditionals=True)
    def pipe():
        k = fn.external_source(source=lambda i: [np.int32(k) for k in range(6)])
        p = fn.external_source(source=lambda i: [np.array(k < 3) for k in range(6)])
        return expression(p, lambda: fn.python_function(k, function=look))

    (out,) = pipe().run()
    return seen[:6], out.as_array().tolist()


@pytest.mark.parametrize(
    "expression, samples, want",
    [
        (lambda p, f: p and f(), [0, 1, 2], [k < 3 and k % 2 == 0 for k in range(6)]),
        (lambda p, f: p or f(), [3, 4, 5], [k < 3 or k % 2 == 0 for k in range(6)]),
        (lambda p, f: not p and f(), [3, 4, 5], [k >= 3 and k % 2 == 0 for k in range(6)]),
        (lambda p, f: not (p or f()), [3, 4, 5], [not (k < 3 or k % 2 == 0) for k in range(6)]),
        (lambda p, f: f() if p else p, [0, 1, 2], [k < 3 and k % 2 == 0 for k in range(6)]),
    ],
    ids=["and", "or", "not and", "not or", "ternary"],
)
def test_the_right_operand_is_computed_where_it_counts(expression, samples, want):
    seen, got = seen_by(expression)
    assert seen == samples and got == want


# Mistakes -------------------------------------------------------------------------------------------------------------


def defined(define, **kwargs):
    @pipeline_def(batch_size=3, num_threads=1, enable_conditionals=True, **kwargs)
    def pipe():
        x = fn.external_source(source=lambda i: [np.int32(k) for k in range(3)])
        return define(x)

    return pipe()


def test_nothing_in_one_branch():
    def define(x):
        y = None
        if x > 1:
            y = x
        return y

    with pytest.raises((TypeError, ValueError), match="None") as caught:
        defined(define).build()
    assert "test_wide_conditionals.py" in str(caught.value) and "if x > 1:" in str(caught.value)


def test_nothing_in_both_branches():
    def define(x):
        if x > 1:
            y, z = x, None
        else:
            y, z = x + 1, None
        assert z is None
        return y

    assert defined(define).run()[0].as_array().tolist() == [1, 2, 2]


CONDITIONS = {
    "vector": (lambda x: fn.stack(x, x), "has to be a scalar of each sample"),
    "image": (lambda x: fn.zeros(shape=[2, 2, 3]), "has to be a scalar of each sample"),
    "elif": (lambda x: x > 5 or fn.stack(x, x), "scalar|bool"),
}


@pytest.mark.parametrize("case", CONDITIONS)
def test_conditions_of_other_kinds(case):
    make, text = CONDITIONS[case]

    def define(x):
        if make(x):
            x = x + 1
        return x

    with pytest.raises(PipelineError, match=text) as caught:
        defined(define).run()
    assert "test_wide_conditionals.py" in str(caught.value)


def test_a_branch_that_fails_names_its_line_and_the_next_batch_comes():
    def define(x):
        if x == 1:
            y = fn.reshape(x, shape=[5])
        else:
            y = fn.reshape(x, shape=[1])
        return y

    pipe = defined(define)
    for _ in range(2):
        with pytest.raises(PipelineError) as caught:
            pipe.run()
        assert "y = fn.reshape(x, shape=[5])" in str(caught.value) and "Sample 1 of iteration" in str(caught.value)
    assert defined(define, on_error="skip").run()[0].as_array().tolist() == [[0], [2]]
