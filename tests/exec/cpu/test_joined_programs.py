# SPDX-License-Identifier: Apache-2.0
"""Random programs of nested conditionals: joined chains give the same results as separate stages."""

import numpy as np
import pytest
from test_joined import apart, coin, fed, is_joined, run, same

from penstock import fn
from penstock.graph.branching import if_else

__all__ = ("apart",)  # a fixture

OPERATORS = [
    lambda x, a: fn.flip(x),
    lambda x, a: fn.brightness(x, brightness=a),
    lambda x, a: fn.rotate(x, angle=a * 40.0, keep_size=True, fill_value=9),
    lambda x, a: fn.resize(x, size=[11, 12]),
    lambda x, a: fn.contrast(x, contrast=0.7),
    lambda x, a: fn.random_resized_crop(x, size=[10, 9]),
]


def made_up(seed):
    """A random program of nested conditionals."""
    rng = np.random.default_rng(seed)

    def block(values, arguments, depth):
        values = list(values)
        for _ in range(rng.integers(1, 4)):
            i = rng.integers(len(values))
            if depth and rng.random() < 0.4:
                seen, state = list(values), {}

                def branch(name, seen=seen, state=state):
                    state[name] = block(seen, arguments, depth - 1)
                    return tuple(state[name])

                condition = fn.random.coin_flip() == 1 if rng.random() < 0.5 else coin() == 1
                values = list(if_else(condition, lambda: branch("then"), lambda: branch("else")))
            elif rng.random() < 0.8:
                values[i] = OPERATORS[rng.integers(len(OPERATORS))](values[i], arguments[rng.integers(2)])
            else:
                values[i] = values[rng.integers(len(values))]
        return values

    def define():
        rng.bit_generator.state = np.random.default_rng(seed).bit_generator.state
        values = [fn.flip(fed()) for _ in range(rng.integers(1, 3))]
        arguments = [fn.random.uniform(range=[0.5, 1.5]) for _ in range(2)]
        values = block(values, arguments, int(rng.integers(1, 4)))
        if rng.random() < 0.7:
            values = [fn.crop(fn.resize(v, size=[9, 10]), crop=(4, 5)) for v in values]
        return tuple(values)

    return define


JOINED_PROGRAMS = []


@pytest.mark.parametrize("seed", range(60))
def test_programs_made_up(seed, apart):
    define = made_up(seed)
    same(run(define), apart(define))
    JOINED_PROGRAMS.append(is_joined(define))


def test_many_of_them_are_joined():
    if len(JOINED_PROGRAMS) < 60:
        pytest.skip("not all of them were run")
    assert sum(JOINED_PROGRAMS) > 20
