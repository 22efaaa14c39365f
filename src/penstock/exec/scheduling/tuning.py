# SPDX-License-Identifier: Apache-2.0
"""Tunes the number of threads, of batches prepared ahead, and where mixed decoders decode, while a pipeline runs.

The setting does not affect the batches, so trying is safe. A change is kept if the consumer gets more samples per
second with it. While the consumer waits, the bottleneck is looked for. While it doesn't, a training on the same GPU may
still lose by what decoding takes of it: then decoding on the CPU, of every other batch or of all, is compared.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_WINDOW_NS = 600_000_000  # minimum measuring time per setting
_WINDOW_BATCHES = 12
_PASSED_OVER = 3  # batches ignored after a change, as some were made before it
_KEEPS_UP = 0.02  # share of the time that the consumer may wait without tuning
_GAIN = 1.03  # required speedup of a change
_AGAIN_NS = 30_000_000_000  # time after which rejected settings are tried again
_LINES = 40  # maximum length of the history
_BUSY = 0.5  # busy share above which more threads are tried before more batches ahead
# Decoding on the CPU instead of the GPU is worth a percent or two of a training, so it is measured for longer, and
# between two measurements of the GPU.
_COMPARED_NS = 3_000_000_000
_COMPARED_GAIN = 1.005
_COMPARED_AGAIN_NS = 600_000_000_000
PLACES = {"gpu": "", "both": ", decoding every other batch on the CPU", "cpu": ", decoding on the CPU"}


class Setting(NamedTuple):
    num_threads: int
    depth: int  # batches prepared ahead
    decode_on: str = "gpu"  # where mixed decoders decode: one of PLACES

    def __str__(self) -> str:
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        return f"{threads}, {self.depth} batch{'es' * (self.depth > 1)} ahead{PLACES[self.decode_on]}"

    def decoding_elsewhere(self) -> list[Setting]:
        return [self._replace(decode_on=place) for place in PLACES if place != self.decode_on]

    def decoding_more_on_cpu(self) -> Setting:
        return self._replace(decode_on="both" if self.decode_on == "gpu" else "cpu")


class Reading(NamedTuple):
    """Sums since the pipeline was built."""

    waited_ns: int  # time that the consumer waited
    native_ns: int  # time that the native threads worked
    memory: int  # current bytes


class Tuner:
    """`most` is the largest setting, `memory` the maximum number of bytes; `read` returns the current sums.
    `moves_decoding`: whether the CPU can do what mixed decoders do, with equal pixels.

    `history` lists the settings tried and their results, one per line.
    """

    def __init__(
        self,
        start: Setting,
        most: Setting,
        memory: int | None,
        read: Callable[[], Reading],
        moves_decoding: bool = False,
    ):
        self.setting = self._best = start
        self._moves_decoding = moves_decoding
        self._compared: list[float] = []  # rates of the best setting, one with more on the CPU, and the best again
        self._is_comparing, self._compare_from = False, 0
        self._most, self._memory, self._read = most, memory, read
        self.history: deque[str] = deque(maxlen=_LINES)
        self._best_rate = 0.0  # samples/s
        self._tried: set[Setting] = set()  # settings not better than the best one
        self._idle_until = 0
        self._begin(_PASSED_OVER)

    def took(self, samples: int) -> Setting | None:
        """Call when the consumer gets a batch. Returns the setting to change to, or None."""
        if self._passing_over:
            self._begin(self._passing_over - 1)
            return None
        self._batches += 1
        self._samples += samples
        now = time.monotonic_ns()
        ns = now - self._since
        if self._batches < _WINDOW_BATCHES or ns < self._window_ns:
            return None
        sums = self._read()
        waited = (sums.waited_ns - self._before.waited_ns) / ns
        busy = (sums.native_ns - self._before.native_ns) / ns / self.setting.num_threads
        rate, keeps_up = self._samples / ns * 1e9, waited < _KEEPS_UP
        if self._is_comparing:
            fits = self._fits(sums.memory)
            if keeps_up and fits and ns < _COMPARED_NS:
                self._window_ns += _WINDOW_NS  # the sums are not read for every batch
                return None
            chosen = self._compare(rate, keeps_up and fits, now)
        else:
            self._judge(rate, sums.memory)
            chosen = self._best
            if not keeps_up and now >= self._idle_until:
                chosen = self._another(busy, now)
            elif keeps_up and chosen.decode_on != "cpu" and now >= self._compare_from:
                self._is_comparing = self._moves_decoding
        changes, self.setting = chosen != self.setting, chosen
        self._begin(_PASSED_OVER if changes else 0)
        return chosen if changes else None

    def _begin(self, passing_over: int) -> None:
        self._passing_over, self._batches, self._samples, self._window_ns = passing_over, 0, 0, _WINDOW_NS
        self._since, self._before = time.monotonic_ns(), self._read()

    def _fits(self, memory: int) -> bool:
        return self._memory is None or memory <= self._memory

    def _judge(self, rate: float, memory: int) -> None:
        """Compares the measured setting with the best one, and keeps the better."""
        what = f"{self.setting}: {rate:,.0f} samples/s"
        if self.setting == self._best:
            if not self._best_rate:
                self.history.append(f"{what}, to begin with")
            self._best_rate = rate
        elif not self._fits(memory):
            self.history.append(f"{what}, but {memory / 1e6:,.0f} MB: not kept")
            self._tried.add(self.setting)
        elif rate < self._best_rate * _GAIN:
            self.history.append(f"{what}: not kept")
            self._tried.add(self.setting)
        else:
            self.history.append(f"{what}: kept")
            self._best, self._best_rate = self.setting, rate
            self._tried.clear()

    def _compare(self, rate: float, is_possible: bool, now: int) -> Setting:
        """Goes on comparing the best setting with one that decodes more on the CPU, while the consumer does not wait
        and the memory is enough. Returns the setting for the next measurement."""
        more = self._best.decoding_more_on_cpu()
        self._compared.append(rate)
        if is_possible and len(self._compared) < 3:
            return more if self.setting == self._best else self._best
        is_better = False
        if len(self._compared) > 1:
            rate = self._compared[1]
            is_better = is_possible and rate > _COMPARED_GAIN * max(self._compared[0], self._compared[2])
            self.history.append(f"{more}: {rate:,.0f} samples/s: {'kept' if is_better else 'not kept'}")
            if is_better:
                self._best, self._best_rate = more, rate
                self._tried.clear()
        self._compared, self._is_comparing = [], False
        self._compare_from = now if is_better else now + _COMPARED_AGAIN_NS
        return self._best

    def _another(self, busy: float, now: int) -> Setting:
        """The next setting to try, starting with the likely bottleneck; the best one if none is left."""
        best, most = self._best, self._most
        threads = [best._replace(num_threads=n) for n in (best.num_threads * 2, best.num_threads + 1)]
        depths = [best._replace(depth=best.depth + 1), best._replace(depth=best.depth + 2)]
        both = [best._replace(num_threads=best.num_threads * 2, depth=best.depth + 1)]
        where = best.decoding_elsewhere() if self._moves_decoding else []
        order = (*threads, *depths, *both, *where) if busy > _BUSY else (*depths, *threads, *both, *where)
        for setting in order:
            limited = setting._replace(
                num_threads=min(setting.num_threads, most.num_threads), depth=min(setting.depth, most.depth)
            )
            if limited != best and limited not in self._tried:
                return limited
        self._idle_until = now + _AGAIN_NS
        self._tried.clear()
        return best
