# SPDX-License-Identifier: Apache-2.0
"""Random programs whose conditionals assign to variables, items and attributes. They are their own reference, as in
conditional_places.py."""

import random

_TARGETS = ["a", "b", "l[0]", "l[1]", "d['a']", "d['b']", "o.a", "o.d['k']", "d['l'][0]"]
_BEYOND = [
    "d.update(a={})",
    "o.put({})",
    "setattr(o, 'a', {})",
    "l[-1] = {}",
    "l.insert(0, l.pop())",
    "put(d, {})",
    "l[1:] = l[1:][::-1]",
    "d['l'] = [{}, d['l'][0]]",
]
_BEGIN = """
class O:
    def put(self, value):
        self.a = value

def put(d, value):
    d['b'] = value

def choose(d, l, x, t):
    if t:
        d['a'] = l[1] + x
    else:
        l[2] = d['b'] - x
    return d['a'] - l[2]

def program(x, p, q):
    a = b = x
    l = [x, x + 1, x + 2]
    d = {'a': x, 'b': x - 1, 'l': [x, x]}
    o = O()
    o.a = x
    o.d = {'k': x}
"""
_END = "    return " + ", ".join(f"{t} + x * 0" for t in [*_TARGETS, "l[2]"]) + "\n"


def made_up(seed: int, beyond: bool) -> str:
    """The text of a `program`. Without `beyond`, the real DALI can also run it."""
    r = random.Random(seed)

    def number():
        return f"{r.choice([*_TARGETS, 'x', 'x'])} {r.choice('+-')} {r.choice(['x', 'x', 'a', '1', '7'])}"

    def truth():
        kinds = [
            r.choice("pq"),
            f"{r.choice(_TARGETS)} + x * 0 {r.choice(['<', '>', '=='])} {r.randint(0, 5)}",
            "x > 2",
        ]
        return r.choice([*kinds, f"not {r.choice('pq')}", "p and q"])

    def statement(depth):
        kind = r.random()
        if kind < 0.15:
            first, second = r.sample(_TARGETS, 2)
            return f"{first}, {second} = {second}, {first}"
        if kind < 0.3:
            return f"{r.choice(_TARGETS)} {r.choice('+-')}= {number()}"
        if kind < 0.4 and (beyond or not depth):  # DALI merges only assignments in the branch itself
            return f"{r.choice(_TARGETS)} = choose(d, l, x, {truth()})"
        if beyond and kind < 0.7:
            return r.choice(_BEYOND).format(number())
        return f"{r.choice(_TARGETS)} = {number()}"

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
            elif depth < 2 * beyond + 1 and kind < 0.65:
                lines += [f"{indent}for i in range(3):", f"{indent}    if x > i:", f"{indent}        l[i] = l[i] + a"]
            else:
                lines.append(f"{indent}{statement(depth)}")
        return lines

    return _BEGIN + "\n".join(block("    ", 0)) + "\n" + _END


def compiled(text: str, folder, name: str):
    """The `program` of a text, which is written to a file, as the libraries read its source."""
    path = folder / f"{name}.py"
    path.write_text(text)
    scope: dict = {"__name__": name}
    exec(compile(text, str(path), "exec"), scope)
    return scope["program"]
