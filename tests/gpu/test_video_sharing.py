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


def test_a_cpu_that_is_too_slow_is_seldom_tried():
    taken = simulated(200, 8, cpu_s=0.24, engine_s=0.005, threads=16)
    assert 1 <= sum(taken) <= 4 and max(taken) == 1


def test_engines_that_wait_for_work_need_no_help():
    assert sum(simulated(200, 64, cpu_s=0.24, engine_s=0.005, threads=16, gap_s=0.1)) == 0
