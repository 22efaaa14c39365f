# SPDX-License-Identifier: Apache-2.0
"""Functions with conditionals. Called with plain numbers of one sample they are their own reference.

`x` is an int32, `p` and `q` are booleans. They return a tuple.
"""

X = (0, 1, 2, 3, 4, 5)
P = (True, True, False, False, True, False)
Q = (True, False, True, False, False, False)


def one_branch(x, p, q):
    if p:
        x = x + 100
    return (x,)


def both_branches(x, p, q):
    if x > 2:
        y = x * 10
    else:
        y = x - 5
    return (y,)


def elif_chain(x, p, q):
    if x > 4:
        x = x + 1
    elif x > 2:
        x = x + 20
    elif p:
        x = x + 300
    return (x,)


def nested(x, p, q):
    y = x
    if p:
        if q:
            y = x * 2
        else:
            y = y + 1000
            if x > 3:
                y = -y
    else:
        z = x + 7
        if x > 2:
            y = z * z
    return y, x


def words(x, p, q):
    return p and q, p or q, not p, p and not q, p or (q and p), not (x > 1), not x


def words_that_compute(x, p, q):
    return p and x > 3, p or x + 1 < 3, (x > 1 and x < 4) or not x > 0


def words_with_constants(x, p, q):
    return p and True, True and p, False or p, p or False, 5 and p, None or p


def comparison_chain(x, p, q):
    return 0 < x < 3, 0 < x <= 3 < x + 2


def condition_of_another_type(x, p, q):
    y = x
    if x:
        y = x + 50
    return (y,)


def constants(x, p, q):
    if p:
        y, z = 1, 2.5
    else:
        y, z = 2, 3.5
    return y, z


def structures(x, p, q):
    if p:
        y = [x, x + 1]
        d = {"a": x, "b": (x, 3)}
    else:
        y = [x + 5, x]
        d = {"a": x + 1, "b": (x * 2, 4)}
    return (*y, d["a"], *d["b"])


def early_return(x, p, q):
    if p:
        return (x,)
    x = x + 1
    if q:
        return (x * 10,)
    return (x + 100,)


def nested_return(x, p, q):
    if p:
        if q:
            return x, x
        x = x + 1
    elif q:
        return x * 2, x
    return x + 100, x


def return_of_some_paths(x, p, q):
    y = 0
    if p:
        if q:
            return (x,)
        y = x * 3
    else:
        y = x * 4
    return (x + y,)


def loop(x, p, q):
    for i in range(3):
        if x > i:
            x = x + 10
        else:
            x = x - 1
    return (x,)


def names_of_one_branch_only(x, p, q):
    if p:
        scratch = x * 2
        y = scratch + 1
    else:
        y = x
    return (y,)


def _helper(v, p):
    if v > 2:
        return v * 7
    if p:
        v = v - 1
    return v


def helper(x, p, q):
    if q:
        x = _helper(x, p)
    return x, _helper(x + 1, p)


def inner_function(x, p, q):
    factor = 3

    def scaled(v):
        if v > 2:
            v = v * factor
        return v

    x = scaled(x)
    if p:
        factor = 5
        y = scaled(x)
    else:
        y = x
    return x, y


def python_conditions(x, p, q):
    y = x
    if isinstance(x, str):
        y = None
    elif len("abc") == 3 and not []:
        y = x + 1 if q is not None else x
    while isinstance(y, str):
        break
    return (y,)


def with_and_try(x, p, q):
    y = x
    try:
        if p:
            y = x + 1
        else:
            y = x - 1
    finally:
        y = y * 2
    return (y,)


_PROGRAMS = [f for f in list(globals().values()) if callable(f) and not f.__name__.startswith("_")]


# Not supported by the real DALI:
BEYOND = [nested_return, return_of_some_paths]
PROGRAMS = [f for f in _PROGRAMS if f not in BEYOND]


def conditional_expression(x, p, q):
    return x if p else x * 10, (x if q else -x) + (1 if p else 2), 5 if x > 1 else 6


def conditional_expression_in_comprehension(x, p, q):
    return tuple(x + i if x > i else x for i in range(3))


BEYOND += [conditional_expression, conditional_expression_in_comprehension]
