# SPDX-License-Identifier: Apache-2.0
"""Functions whose branches change items, attributes and globals in ways that the real DALI rejects, or applies to the
wrong samples. They are their own reference, as in conditional_places.py."""

from conditional_places import Holder, Slots

G = None


def item_from_the_end(x, p, q):
    values = [x, x, x, x]
    if p:
        values[-1] = x + 1
        values[len(values) - 2] = x + 2
        values[:2] = [x + 3, x + 4]
    return tuple(values)


def item_of_two_keys(x, p, q):
    d = {(0, 1): x}
    if p:
        d[0, 1] = x + 100
    return (d[0, 1],)


def list_that_grows(x, p, q):
    values, more = [], [x]
    if p:
        values.append(x + 1)
        more += [x + 1]
    else:
        values.append(x + 2)
        more += [x + 2]
    return *values, *more


def inserted(x, p, q):
    values = [x, x + 1]
    if p:
        values.insert(0, x + 7)
    return values[0], values[1]


def methods_of_dictionaries(x, p, q):
    d = {"a": x, "b": x}
    if p:
        d.update(a=x + 100)
    else:
        d |= {"b": x + 1}
    y = d.pop("b") if q is None else d["b"]
    return d["a"], y


def flags(x, p, q):
    d = {"flag": 0, "b": False}
    if p:
        d.update(flag=1)
    if q:
        d["b"] = True
    return d["flag"] + x, d["b"] * 1 + x


def item_nobody_reads(x, p, q):
    d = {"a": x, "b": x}
    if p:
        del d["b"]
        d["c"] = x + 1
    return (d["a"],)


def attribute_by_method(x, p, q):
    holder = Holder(out=x)
    if p:
        holder.keep(x + 100)
    if q:
        holder.out = holder.out + 3
    return (holder.out,)


def attribute_by_name(x, p, q):
    o = Holder(a=x)
    if p:
        setattr(o, "a", x + 100)  # noqa: B010
    return (o.a,)


def new_slot(x, p, q):
    o = Slots()
    if p:
        o.b = x
        o.a = x + 1
    else:
        o.a = x + 2
    return (o.a,)


def _set(d, value):
    d["a"] = value


def dictionary_passed_on_inside(x, p, q):
    d = {"a": x}
    if p:
        _set(d, x + 100)
    return (d["a"],)


def item_of_a_result(x, p, q):
    d = {"a": x}

    def get():
        return d

    if p:
        get()["a"] = x + 100
    return (d["a"],)


def variable_of_an_inner_function(x, p, q):
    y = x

    def add():
        nonlocal y
        y = x + 100

    if p:
        add()
    return (y,)


def _set_global(value):
    global G
    G = value


def global_by_function(x, p, q):
    _set_global(x)
    if p:
        _set_global(x + 1)
    return (G,)


def in_an_expression(x, p, q):
    d = {"a": x, "b": x}
    y = d.setdefault("c", x + 1) if p else d.setdefault("c", x + 2)
    z = p and bool(d.update(a=x + 3)) is not None
    return y, d["c"], d["a"], z is not None


PROGRAMS = [f for n, f in list(globals().items()) if hasattr(f, "__code__") and not n.startswith("_")]
