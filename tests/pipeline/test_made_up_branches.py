# SPDX-License-Identifier: Apache-2.0
"""Random programs with nested branches, in the program and in functions that it calls, on images, floats and integers,
with operators of several kinds, compared with the same program in NumPy for each sample."""

import random

import numpy as np
import pytest

from made_up_conditionals import compiled
from penstock import fn, pipeline_def, types
from penstock.operators.conditional.merge import Merge

N, BATCHES = 5, 3


class Ours:
    """The operators that the programs call."""

    mirror = staticmethod(lambda a: fn.flip(a, horizontal=1))
    upside_down = staticmethod(lambda a: fn.flip(a, horizontal=0, vertical=1))
    turned = staticmethod(lambda a: fn.transpose(a, perm=[1, 0, 2], transpose_layout=False))
    inverse = staticmethod(lambda a: fn.cast(255 - a, dtype=types.UINT8))
    middle = staticmethod(lambda a: fn.crop(a, crop=[3, 3]))
    tail = staticmethod(lambda a: fn.slice(a, 1, 2, axes=[0]))
    padded = staticmethod(lambda a: fn.pad(a, axes=[0, 1], shape=[9, 8], fill_value=7))
    swapped = staticmethod(
        lambda a: fn.python_function(a, function=lambda x: x[..., ::-1].copy(), output_layouts="HWC")
    )
    doubled = staticmethod(lambda a: fn.cast(a * 2, dtype=types.UINT8))
    real = staticmethod(lambda a: fn.cast(a, dtype=types.FLOAT))
    whole = staticmethod(lambda f: fn.cast(f, dtype=types.UINT8))
    largest = staticmethod(lambda a: fn.cast(fn.reductions.max(a), dtype=types.INT32))
    height = staticmethod(lambda a: fn.cast(a.shape()[0], dtype=types.INT32))

    @staticmethod
    def split(a, p, first, second):
        if p:
            return first(a)
        return second(a)


def _padded(a):
    out = np.full((max(9, a.shape[0]), max(8, a.shape[1]), a.shape[2]), 7, a.dtype)
    out[: a.shape[0], : a.shape[1]] = a
    return out


def _middle(a):
    y, x = (a.shape[0] - 3 + 1) // 2, (a.shape[1] - 3 + 1) // 2
    return a[y : y + 3, x : x + 3]


def _bytes(a):  # halves away from zero
    return np.clip(np.floor(a + 0.5), 0, 255).astype(np.uint8)


class Plain:
    """The same for one sample."""

    mirror = staticmethod(lambda a: a[:, ::-1])
    upside_down = staticmethod(lambda a: a[::-1])
    turned = staticmethod(lambda a: a.transpose(1, 0, 2))
    inverse = staticmethod(lambda a: 255 - a)
    middle = staticmethod(_middle)
    tail = staticmethod(lambda a: a[1:3])
    padded = staticmethod(_padded)
    swapped = staticmethod(lambda a: a[..., ::-1])
    doubled = staticmethod(lambda a: _bytes(a.astype(int) * 2))
    real = staticmethod(lambda a: a.astype(np.float32))
    whole = staticmethod(_bytes)
    largest = staticmethod(lambda a: int(a.max()))
    height = staticmethod(lambda a: a.shape[0])
    split = staticmethod(lambda a, p, first, second: first(a) if p else second(a))


SAME_SIZE = ["mirror", "upside_down", "inverse", "swapped", "doubled"]
OTHER_SIZE = ["turned", "padded"]


def made_up(seed):
    """The source of a program of `m`, images a and b, floats f, an integer n and booleans p and q. Images stay 3 x 3 or
    larger, as operators cut regions."""
    r = random.Random(seed)

    def picture(depth=0):
        kind = r.random()
        if depth > 2 or kind < 0.2:
            return r.choice("ab")
        if kind < 0.3:
            return "m.whole(f)"
        if kind < 0.45:
            one, other = r.sample(SAME_SIZE + OTHER_SIZE, 2)
            return f"m.split({picture(depth + 1)}, {r.choice('pq')}, m.{one}, m.{other})"
        if kind < 0.55:
            return f"m.padded(m.tail({picture(depth + 1)}))"
        return f"m.{r.choice([*SAME_SIZE, *OTHER_SIZE, 'middle'])}({picture(depth + 1)})"

    def number():
        return r.choice([f"n + {r.randint(-2, 3)}", f"m.height({picture(1)})", f"m.largest({picture(1)})", "n * 2"])

    def truth():
        return r.choice(
            ["p", "q", "not p", "p and q", "p or not q", f"n > {r.randint(0, 6)}"]
            + [f"m.height({r.choice('ab')}) > {r.randint(3, 8)}", f"m.largest({r.choice('ab')}) > 250"]
        )

    def statement():
        kind = r.random()
        if kind < 0.2:
            return f"n = {number()}"
        if kind < 0.4:
            return r.choice([f"f = m.real({picture()})", "f = f * 0.5", "f = f + n"])
        if kind < 0.5:
            return "a, b = b, a"
        return f"{r.choice('ab')} = {picture()}"

    def block(indent, depth):
        lines = []
        for _ in range(r.randint(1, 2 if depth else 3)):
            if depth < 3 and r.random() < 0.6 - 0.15 * depth:
                lines += [f"{indent}if {truth()}:", *block(indent + "    ", depth + 1)]
                if r.random() < 0.3:
                    lines += [f"{indent}elif {truth()}:", *block(indent + "    ", depth + 1)]
                if r.random() < 0.7:
                    lines += [f"{indent}else:", *block(indent + "    ", depth + 1)]
            else:
                lines.append(indent + statement())
        return lines

    return "\n".join(["def program(m, a, b, f, n, p, q):", *block("    ", 0), "    return a, b, f + 0.0, n + 0", ""])


def data(seed):
    """(a, b, f, n, p, q) for each sample of each batch."""
    rng = np.random.default_rng(seed)

    def sample():
        a, b, f = (rng.integers(0, 256, (*rng.integers(3, 9, 2), 3), np.uint8) for _ in range(3))
        return a, b, f.astype(np.float32), np.int32(rng.integers(0, 6)), rng.random() < 0.5, rng.random() < 0.5

    return [[sample() for _ in range(N)] for _ in range(BATCHES)]


def differences(text, program, seed):
    """The differences between our results and NumPy's."""
    batches = data(seed)

    @pipeline_def(batch_size=N, num_threads=2, device_id=None, enable_conditionals=True)
    def pipe():
        def column(k, layout):
            return fn.external_source(source=lambda i: [np.asarray(s[k]) for s in batches[i % BATCHES]], layout=layout)

        return tuple(program(Ours, *(column(k, "HWC" if k < 3 else None) for k in range(6))))

    p, wrong = pipe(), []
    for i, samples in enumerate(batches):
        outputs = p.run()
        for j, sample in enumerate(samples):
            a, b, f, n, yes, no = sample
            want = program(Plain, a, b, f, int(n), bool(yes), bool(no))
            for name, out, w in zip("abfn", outputs, want):
                got = np.asarray(out.at(j))
                if got.shape != np.shape(w) or not np.array_equal(got, np.asarray(w, got.dtype)):
                    wrong.append((i, j, name))
    return wrong


@pytest.mark.parametrize("tens", range(10))
def test_as_numpy_does_it(tens, tmp_path):
    for seed in range(10 * tens, 10 * tens + 10):
        text = made_up(seed)
        program = compiled(text, tmp_path, f"branches_{seed}")
        assert not differences(text, program, seed), f"seed {seed}:\n{text}"


def test_samples_that_are_merged_in_another_order_are_seen(tmp_path, monkeypatch):
    """An artificial bug: samples of the first branch are merged in reverse order."""
    right = Merge.run

    def wrong(self, a, x, y, condition):
        return right(self, a, x.take(np.arange(len(x))[::-1]) if len(y) else x, y, condition)

    monkeypatch.setattr(Merge, "run", wrong)
    seen = []
    for seed in range(20):
        text = made_up(seed)
        seen.append(bool(differences(text, compiled(text, tmp_path, f"wrong_{seed}"), seed)))
    assert sum(seen) >= 10
