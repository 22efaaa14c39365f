# SPDX-License-Identifier: Apache-2.0
"""Functions with `continue` in an `if` on data.

As in conditional_programs.py they are their own reference, called with plain numbers: `x` is an integer, `p` and `q`
are booleans, and they return a tuple.
"""

import contextlib


def at_the_beginning(x, p, q):
    for _ in range(3):
        if p:
            continue
        x = x + 1
    return (x,)


def with_work_before(x, p, q):
    for i in range(3):
        if x > i + 1:
            x = x * 2
            continue
        x = x + 1
    return (x,)


def at_the_end(x, p, q):
    for _ in range(2):
        x = x + 1
        if p:
            continue
    return (x,)


def nested_ifs(x, p, q):
    for i in (1, 2, 3):
        if p:
            if q:
                x = x + 10
                continue
            x = x + 100
        x = x + i
    return (x,)


def nested_loops(x, p, q):
    y = x
    for i in range(2):
        for j in range(2):
            if x > i + j:
                continue
            y = y + 1
        if q:
            continue
        y = y + 10
    return (y,)


def loop_in_a_branch(x, p, q):
    for _ in range(2):
        if p:
            for _ in range(3):
                if q:
                    continue
                x = x + 1
        x = x + 10
    return (x,)


def in_the_other_branch(x, p, q):
    for _ in range(3):
        if p:
            x = x + 5
        else:
            continue
        x = x + 1
    return (x,)


def in_all_branches_but_one(x, p, q):
    for _ in range(3):
        if p:
            continue
        elif q:
            x = x + 5
            continue
        else:
            x = x + 7
        x = x + 1
    return (x,)


def in_all_branches(x, p, q):
    for _ in range(3):
        if p:
            x = x + 1
        else:
            if q:
                continue
            else:
                x = x - 1
                continue
        x = x * 2
    return (x,)


def several(x, p, q):
    for i in range(4):
        if i == 1:
            continue
        if p:
            continue
        x = x + i
        if q:
            continue
        x = x * 2
    return (x,)


def on_python_values_in_a_branch(x, p, q):
    for i in range(2):
        if p:
            if i == 0:
                continue
        x = x + 1
    return (x,)


def word_of_both_kinds(x, p, q):
    for i in range(3):
        if i == 1 or p:
            continue
        if q and i > 0:
            continue
        x = x + 1
    return (x,)


def over_data(x, p, q):
    y = x
    for v in (x, x + 1):
        if v > 2:
            continue
        y = y + v
    return (y,)


def in_while(x, p, q):
    i = 0
    while i < 3:
        i += 1
        if p:
            continue
        x = x + i
    return (x,)


def break_before(x, p, q):
    for i in range(4):
        if i == 2:
            break
        if p:
            continue
        x = x + 1
    return (x,)


def break_of_an_inner_loop(x, p, q):
    for _ in range(3):
        if p:
            continue
        while True:
            x = x + 1
            break
    return (x,)


def return_before(x, p, q):
    for i in range(3):
        if i == 1:
            return (x,)
        if p:
            continue
        x = x + 1
    return (x,)


def items(x, p, q):
    d = {"a": x, "b": x + 1}
    for k in d:
        if p:
            continue
        d[k] = d[k] + 5
    return d["a"], d["b"]


def in_with(x, p, q):
    for _ in range(3):
        with contextlib.nullcontext():
            if p:
                continue
            x = x + 1
        x = x + 10
    return (x,)


def in_try(x, p, q):
    for _ in range(2):
        try:
            if p:
                continue
            x = x + 1
        finally:
            x = x + 100
        x = x + 10
    return (x,)


def unreachable_after_it(x, p, q):
    for _ in range(2):
        if p:
            continue
            x = x + 100
        x = x + 1
    return (x,)


def in_an_inner_function(x, p, q):
    def raised(v):
        for i in range(2):
            if v > i:
                continue
            v = v + 10
        return v

    return (raised(x),)


PROGRAMS = [f for f in list(globals().values()) if callable(f)]


# Not supported by the real DALI:


def variable_of_the_loop(x, p, q):
    for _ in range(2):
        if p:
            y = x
            continue
        y = x + 1
    return (y,)


def items_of_one_list(x, p, q):
    made = []
    for i in range(2):
        if p:
            made.append(x)
            continue
        made.append(x + i)
    return tuple(made)


def while_counted_in_the_branches(x, p, q):
    i = 0
    while i < 3:
        if p:
            i += 1
            continue
        i += 1
        x = x + i
    return (x,)


def with_else(x, p, q):
    for _ in range(2):
        if p:
            continue
        x = x + 1
    else:
        x = x + 50
    return (x,)


def in_try_with_else(x, p, q):
    for _ in range(2):
        try:
            if p:
                continue
            x = x + 1
        except ValueError:
            x = x + 1000
        else:
            x = x + 5
    return (x,)


def in_match(x, p, q):
    for i in range(2):
        match i:
            case 0:
                if p:
                    continue
                x = x + 1
            case _:
                x = x + 10
        x = x + 100
    return (x,)


BEYOND = [f for f in list(globals().values()) if callable(f) and f not in PROGRAMS]
