# SPDX-License-Identifier: Apache-2.0
"""The CPU decodes a share of the videos if the GPU's engines are the bottleneck."""

import numpy as np

from penstock.operators.decode.gpu.sharing import Sharing


def simulated(batches, n, cpu_s, engine_s, threads, gap_s=0.0):
    """Number of videos, of n per batch, that the CPU takes. `cpu_s`, `engine_s`: seconds per video on the CPU and on
    one engine."""
    now = [0.0]
    sharing, taken = Sharing(lambda: now[0]), []
    for _ in range(batches):
        k = sharing.begin(n)
        taken.append(k)
        by_cpu, by_engines = cpu_s * -(-k // threads), engine_s * (n - k)
        now[0] += max(by_cpu, by_engines)
        sharing.end(k, by_engines, by_cpu)
        now[0] += gap_s
    return taken


def test_both_are_through_at_the_same_time():
    # The engines alone need 64 * 5 = 320 ms; the CPU decodes 16 videos in 240 ms, and then the engines also need 240
    # ms.
    taken = simulated(200, 64, cpu_s=0.24, engine_s=0.005, threads=16)
    assert taken[0] == 0 and 12 <= np.mean(taken[100:]) <= 16 and max(taken[100:]) <= 17


def test_a_cpu_that_is_too_slow_is_tried_more_and_more_seldom():
    taken = simulated(4000, 8, cpu_s=0.24, engine_s=0.005, threads=16)
    tried = np.flatnonzero(taken)
    assert max(taken) == 1 and 5 <= len(tried) <= 7 and (np.diff(tried, 2) > 0).all()


def overlapping(batches, n, cpu_s, engine_s, threads, in_flight=3):
    """The same if some batches run at the same time and share engines and threads: (videos that the CPU takes, time of
    each batch). A batch begins when the one `in_flight` before it has ended."""
    now = [0.0]
    sharing, taken, lasted, running = Sharing(lambda: now[0]), [], [], []
    engines_free = 0.0
    for _ in range(batches):
        if len(running) == in_flight:
            begun, ends, k, by_engines, by_cpu = running.pop(0)
            now[0] = max(now[0], ends)
            sharing.end(k, by_engines, by_cpu)
            lasted.append(ends - begun)
        k = sharing.begin(n)
        taken.append(k)
        engines_free = max(engines_free, now[0]) + engine_s * (n - k)
        others = sum(r[2] for r in running)
        by_cpu = cpu_s * -(-(k + others) // threads) if k else 0.0
        by_engines = engines_free - now[0]
        running.append((now[0], now[0] + max(by_engines, by_cpu), k, by_engines, by_cpu))
    return np.array(taken), np.array(lasted)


def test_one_batch_at_a_time_tries():
    taken, _ = overlapping(600, 8, cpu_s=0.24, engine_s=0.002, threads=16)
    assert set(taken) == {0, 1} and 1 <= taken.sum() <= 4


def test_the_share_is_not_increased_by_results_of_the_share_before():
    """The CPU is fast enough for some videos of three batches at once, and never gets so many that all wait for it."""
    taken, lasted = overlapping(600, 32, cpu_s=0.23, engine_s=0.0032, threads=16)
    assert taken[100:].mean() >= 2 and lasted[100:].max() < 0.5


def test_engines_that_wait_for_work_need_no_help():
    assert sum(simulated(200, 64, cpu_s=0.24, engine_s=0.005, threads=16, gap_s=0.1)) == 0
