# SPDX-License-Identifier: Apache-2.0
"""Functions whose conditionals assign to items, attributes and globals.

As in conditional_programs.py they are their own reference, called with plain numbers: `x` is an integer, `p` and `q`
are booleans, and they return a tuple.
"""

from collections import OrderedDict, deque
from types import SimpleNamespace

G = None


class Holder:
    kind = None

    def __init__(self, **values):
        self.__dict__.update(values)

    def halve(self, x, p):
        self.out = x
        if p:
            self.out = x + 100
        return self.out

    def keep(self, value):
        self.out = value

    def count(self):
        self.calls += 1
        return self.calls


class Slots:
    __slots__ = ("a", "b")


def item(x, p, q):
    d = {"a": x}
    if p:
        d["a"] = x + 100
    return (d["a"],)


def new_item_in_both(x, p, q):
    d = {}
    if p:
        d["a"] = x + 100
    else:
        d["a"] = x
    return (d["a"],)


def item_that_is_read_later(x, p, q):
    d = {"a": x}
    if p:
        d["a"] = x + 100
    y = x
    if q:
        y = d["a"] * 2
    return d["a"], y


def item_of_list(x, p, q):
    values = [x, x]
    if p:
        values[0] = x + 100
    return tuple(values)


def item_by_variable(x, p, q):
    values = [x, x, x]
    for i in range(2):
        if p:
            values[i] = values[i] + 100
    return tuple(values)


def items_of_two_names(x, p, q):
    values, i, j = [x, x + 1], 0, 0
    if p:
        values[i] = x + 100
    else:
        values[j] = x + 200
    return tuple(values)


def augmented_item(x, p, q):
    d = {"a": x}
    if p:
        d["a"] += 100
    return (d["a"],)


def swapped_items(x, p, q):
    values, d = [x, x + 50], {"a": x, "b": x + 50}
    if p:
        values[0], values[1] = values[1], values[0]
    else:
        d["a"], d["b"] = d["b"], d["a"]
    return *values, *d.values()


def number_as_item(x, p, q):
    d = {"a": 1, "b": 2.5}
    if p:
        d["a"] = 5
    return d["a"] + x, d["b"] + x


def list_as_item(x, p, q):
    d = {"a": [x, x]}
    if p:
        d["a"] = [x + 1, x + 2]
    return tuple(d["a"])


def items_in_a_loop(x, p, q):
    d = {k: x for k in "abc"}
    for k in "ab":
        if p:
            d[k] = d[k] + 100
    return tuple(d.values())


def removed_and_new_item(x, p, q):
    d = {"a": x, "b": x + 1}
    if p:
        del d["a"]
        d["a"] = x + 5
    return d["a"], d["b"]


def attribute(x, p, q):
    o = SimpleNamespace(a=x)
    if p:
        o.a = x + 100
    return (o.a,)


def attributes_and_items(x, p, q):
    o = Holder(inner=Holder(a=x), d={"a": [x, x]})
    d = {"o": o}
    if p:
        o.inner.a = x + 1
        o.d["a"][1] = x + 2
        d["o"].new = x
    else:
        d["o"].new = x + 3
    return o.inner.a, *o.d["a"], o.new


def attribute_of_self(x, p, q):
    holder = Holder()
    y = holder.halve(x, p)
    return y, holder.out


def counted_by_hand(x, p, q):
    holder = Holder(n=0)
    if p:
        holder.n += 1
    return (x + holder.n,)


def slots(x, p, q):
    o = Slots()
    o.a = x
    if p:
        o.a = x + 1
    return (o.a,)


def attribute_of_class(x, p, q):
    Holder.kind = x
    if p:
        Holder.kind = x + 1
    return (Holder.kind,)


def global_variable(x, p, q):
    global G
    G = x
    if p:
        G = x + 100
    elif q:
        G = G - 7
    return (G,)


def _fill(d, x, p):
    if p:
        d["a"] = x + 100


def dictionary_passed_on(x, p, q):
    d = {"a": x}
    _fill(d, x, p)
    return (d["a"],)


def two_names_of_one_dictionary(x, p, q):
    d = {"a": x}
    e = d
    if p:
        e["a"] = x + 100
    return (d["a"],)


def nested_conditionals(x, p, q):
    d = {"a": [{"b": x}]}
    if p:
        if q:
            if x > 0:
                d["a"][0]["b"] = x + 1
            else:
                d["a"][0]["b"] = x + 2
        else:
            d["a"] = [{"b": x + 3}]
    return (d["a"][0]["b"],)


def dictionary_of_a_branch(x, p, q):
    d = {"a": x}
    if p:
        e = {"b": d["a"]}
        if q:
            e["b"] = x + 100
        d["a"] = e["b"]
    return (d["a"],)


def new_list_or_new_item(x, p, q):
    a, b = [x, x], [x, x]
    if p:
        a = [x + 1, x + 2]
        b[0] = x + 5
    else:
        a[0] = x + 5
        b = [x + 1, x + 2]
    return *a, *b


def other_list_or_new_item(x, p, q):
    a, b = [x, x], [x, x]
    if p:
        b = a
    else:
        a[0] = x + 9
    return *a, *b


def kinds_of_dictionaries(x, p, q):
    d, e = OrderedDict(a=x, b=x), deque([x, x])
    if p:
        d["a"] = x + 1
        d.move_to_end("a")
        e[1] = x + 2
    return d["a"], d["b"], *e


def target_of_a_loop(x, p, q):
    values = [x, x]
    if p:
        for values[0] in [x + 1, x + 2]:
            pass
    return tuple(values)


def condition_of_python_inside(x, p, q):
    d = {"a": x}
    if p:
        if len(d) == 1:
            d["a"] = x + 9
    return (d["a"],)


def words_are_kept(x, p, q):
    done, holder = [], Holder(calls=0)
    if p:
        done.append("p")
        x = x + 0 * holder.count()
    else:
        done.append("not p")
        x = x + 0 * holder.count()
    assert isinstance(holder.calls, int) and "not p" in done or "p" in done
    return (x,)


PROGRAMS = [f for n, f in list(globals().items()) if callable(f) and hasattr(f, "__code__") and not n.startswith("_")]
