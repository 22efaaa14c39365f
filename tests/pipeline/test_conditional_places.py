# SPDX-License-Identifier: Apache-2.0
"""Assignments to items, attributes and globals in branches are merged, or refused with the user's expression."""

import time

import numpy as np
import pytest

import conditional_effects as effects
import conditional_places as places
from made_up_conditionals import compiled, made_up
from penstock import fn, pipeline_def
from pipeline.test_conditionals import raises, reference, run_program


@pytest.mark.parametrize("debug", [False, True], ids=["graph", "debug"])
@pytest.mark.parametrize("program", places.PROGRAMS + effects.PROGRAMS, ids=lambda f: f.__name__)
def test_as_plain_python(program, debug):
    assert run_program(program, debug=debug) == reference(program)


@pytest.mark.parametrize("beyond", [False, True], ids=["dali", "beyond"])
@pytest.mark.parametrize("seed", range(40))
def test_made_up(tmp_path, seed, beyond):
    text = made_up(seed, beyond)
    program = compiled(text, tmp_path, f"made_up_{seed}_{beyond}")
    assert run_program(program) == reference(program), text


# Refused --------------------------------------------------------------------------------------------------------------


def item_of_one_branch(x, p, q):
    d = {}
    if p:
        d["a"] = x
    return d["a"]


def longer_list(x, p, q):
    kept = [x]
    if p:
        kept.append(x + 1)
    return kept[1]


def removed_item(x, p, q):
    d = {"a": [x, x]}
    if p:
        d["a"].pop()
    return d["a"][1]


def attribute_that_was_none(x, p, q):
    o = places.Holder(out=None)
    if p:
        o.out = x
    return o.out


def other_word(x, p, q):
    d = {"mode": "bright"}
    if p:
        d["mode"] = "dark"
    return x if d["mode"] == "dark" else x + 1


def a_set(x, p, q):
    seen = {1}
    if p:
        seen.add(2)
    return x


def an_array(x, p, q):
    table = np.zeros(3)
    if p:
        table[1] = 5
    return x


REFUSED = [
    (item_of_one_branch, r"`d\['a'\]` is not assigned in the second branch of the conditional of line \d+"),
    (longer_list, r"`kept\[1\]` is not assigned in the second branch"),
    (removed_item, r"`d\['a'\]\[1\]` is not assigned in the first branch"),
    (attribute_that_was_none, "`o.out` has different structures .*: data and None"),
    (other_word, r"`d\['mode'\]` has different structures .*: 'dark' and 'bright'"),
    (a_set, "the set `seen` differs after the branches of the conditional of line"),
    (an_array, "the ndarray `table` differs after the branches"),
]


@pytest.mark.parametrize("program, text", REFUSED, ids=[f.__name__ for f, _ in REFUSED])
@pytest.mark.parametrize("debug", [False, True], ids=["graph", "debug"])
def test_refused(program, text, debug):
    message = raises(program, ValueError, text, debug=debug)
    assert "if p:" in message and __file__ in message


def test_what_is_kept_where_nobody_looks_is_told_by_its_line():
    def program(x, p, q):
        if p:
            _HIDDEN.append(lambda y=x + 1: y)
        return _HIDDEN.pop()() + x

    raises(program, ValueError, r"the result of line \d+ \(`_HIDDEN.append\(.*`\) was computed inside of a branch")


_HIDDEN: list = []


# What is no data stays -----------------------------------------------------------------------------------------------


def test_other_state_is_left_as_it_is():
    holder, log, cache = places.Holder(calls=0), [], {}

    def program(x, p, q):
        if p:
            x = x + holder.count()
            log.append("first")
            cache.setdefault("made", object())
        else:
            x = x + 10 * holder.count()
            log.append("second")
        return (x,)

    want = [x + (1 if p else 20) for x, p in zip(range(6), (True, True, False, False, True, False))]
    assert run_program(program) == [want]
    assert holder.calls == 2 and log == ["first", "second"] and type(cache["made"]) is object


def test_an_error_in_a_branch_comes_out():
    def program(x, p, q):
        d = {"a": x}
        if p:
            d["a"] = x + 1
            raise KeyError("mine")
        return d["a"]

    raises(program, KeyError, "mine")


def test_large_tables_cost_little():
    table = {i: [i] for i in range(300_000)}

    @pipeline_def(batch_size=1, enable_conditionals=True)
    def pipe():
        x = fn.random.uniform()
        for k in range(20):
            if x > k:
                x = x + table[k][0]
        return x

    began = time.process_time()
    pipe().run()
    assert time.process_time() - began < 10
