# SPDX-License-Identifier: Apache-2.0
"""Distribution of work between the JPEG engine and the kernels."""

import numpy as np

from penstock.gpu.sharing import Sharing, spread


def shares(engine, kernels, asked, n=60, pauses=()):
    """The engine's share after each batch of 100 images of one byte. At most `asked` images per second are requested,
    and the result is limited by both decoders' speeds. There are pauses before the batches `pauses`."""
    sharing, now, found = Sharing("engine", "kernels", ()), 0.0, []
    sharing.has_engine = True
    for i in range(n):
        now += 0.3 * (i in pauses)
        taken = int(spread(100, sharing.share(100, now)).sum())
        a, b = taken / engine, (100 - taken) / kernels
        step = max(a, b, 100 / asked)
        now += step
        if taken:
            sharing.measured("engine", taken, a, taken)
        if taken < 100:
            sharing.measured("kernels", 100 - taken, b, 100 - taken, step + 0.3 * (i in pauses))
        found.append(taken / 100)
    return found


def test_the_engine_takes_all_that_it_is_fast_enough_for():
    assert shares(engine=30e3, kernels=200e3, asked=10e3)[-1] == 1


def test_the_engine_is_left_out_where_more_is_wanted_than_it_can_do():
    assert shares(engine=30e3, kernels=200e3, asked=100e3)[-20:] == [0] * 20


def test_both_end_at_the_same_time_where_the_kernels_are_what_all_wait_for():
    found = shares(engine=30e3, kernels=60e3, asked=1e9)[-20:]
    assert abs(np.mean(found) - 1 / 3) < 0.05


def test_a_pause_of_the_consumer_changes_nothing():
    """As between parts of a benchmark, or during validation."""
    assert shares(engine=39e3, kernels=105e3, asked=80e3, n=120, pauses=(60, 61, 90))[20:] == [0] * 100
    found = shares(engine=30e3, kernels=60e3, asked=1e9, n=120, pauses=(60,))[60:]
    assert max(found) < 0.45 and abs(np.mean(found[20:]) - 1 / 3) < 0.05


def test_a_consumer_that_becomes_slow_gets_the_engine():
    found = shares(engine=39e3, kernels=105e3, asked=80e3, n=120, pauses=range(60, 120))
    assert found[59] == 0 and found[-50:] == [1] * 50


def test_between_there_is_a_bit_of_both():
    assert 0.3 < np.mean(shares(engine=30e3, kernels=200e3, asked=24e3)[-20:]) < 0.7


def test_without_an_engine():
    sharing = Sharing("engine", "kernels")
    assert sharing.share(5) == 0


def test_pictures_are_spread_over_the_batch():
    taken = spread(8, 0.5)
    assert taken.sum() == 4 and np.diff(np.flatnonzero(taken)).max() == 2
