# SPDX-License-Identifier: Apache-2.0
"""Tunes the number of threads, of batches prepared ahead, and where mixed decoders decode, while a pipeline runs.

The setting does not affect the batches, so trying is safe. A change is kept if the consumer gets more samples per
second with it. While the consumer waits, the bottleneck is looked for, with `autotune`. While it doesn't, a training on
the same GPU may still lose by what decoding takes of it: then decoding on the CPU, of every other batch or of all, is
compared.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

_WINDOW_NS = 600_000_000  # minimum measuring time per setting
_WINDOW_BATCHES = 12
_PASSED_OVER = 3  # batches ignored after a change, as some were made before it
# The consumer has paused, such as for an evaluation, if it took no batch for this long and for so many times the usual.
_PAUSE_NS, _PAUSE = 500_000_000, 8
_KEEPS_UP = 0.02  # share of the time that the consumer may wait without tuning
_GAIN = 1.03  # required speedup of a change
_AGAIN_NS = 30_000_000_000  # time after which rejected settings are tried again
_LINES = 40  # maximum length of the history
_BUSY = 0.5  # busy share above which more threads are tried before more batches ahead
# Decoding on the CPU instead of the GPU is worth a percent or two of a training, so each place is measured for longer,
# and the GPU before and after the others.
_COMPARED_NS = 3_000_000_000
_COMPARED_PASSED_OVER = 12  # the first ones also allocate memory
_COMPARED_GAIN = 1.003
_SLOWER = 3  # measurements, one after the other, slower than with the GPU before it decodes again
_COMPARED_AGAIN_NS = 600_000_000_000
PLACES = {
    "gpu": "decoding on the GPU",
    "both": "decoding every other batch on the CPU",
    "cpu": "decoding on the CPU",
}


class Setting(NamedTuple):
    num_threads: int
    depth: int  # batches prepared ahead
    decode_on: str = "gpu"  # where mixed decoders decode: one of PLACES

    def __str__(self) -> str:
        threads = "1 thread" if self.num_threads == 1 else f"{self.num_threads} threads"
        decoding = "" if self.decode_on == "gpu" else f", {PLACES[self.decode_on]}"
        return f"{threads}, {self.depth} batch{'es' * (self.depth > 1)} ahead{decoding}"

    def decoding_elsewhere(self) -> list[Setting]:
        return [self._replace(decode_on=place) for place in PLACES if place != self.decode_on]

    def decoding_more_on_cpu(self) -> list[Setting]:
        places = list(PLACES)
        return [self._replace(decode_on=place) for place in places[places.index(self.decode_on) + 1 :]]


class Reading(NamedTuple):
    """Sums since the pipeline was built."""

    waited_ns: int  # time that the consumer waited
    native_ns: int  # time that the native threads worked
    memory: int  # current bytes


class Tuner:
    """`most` is the largest setting, or None to choose only where mixed decoders decode, while the consumer does not
    wait; `memory` is the maximum number of bytes; `read` returns the current sums. `moves_decoding()`: whether the CPU
    can do what mixed decoders do, with equal pixels.

    `history` lists the settings tried and their results, one per line.
    """

    def __init__(
        self,
        start: Setting,
        most: Setting | None,
        memory: int | None,
        read: Callable[[], Reading],
        moves_decoding: Callable[[], bool] = lambda: False,
    ):
        self.setting = self._best = start
        self._moves_decoding = moves_decoding
        self._compared: list[tuple[Setting, float]] = []  # those measured, and their rates
        self._to_compare: list[Setting] = []  # the one that is measured, and those to follow
        self._compare_from = 0
        self._rate_on_gpu = 0.0  # when the places were compared
        self._slower = 0  # measurements in a row that were slower than that
        self._most, self._memory, self._read = most, memory, read
        self._name: Callable[[Setting], str] = str if most is not None else lambda setting: PLACES[setting.decode_on]
        self.history: deque[str] = deque(maxlen=_LINES)
        self._best_rate = 0.0  # samples/s
        self._tried: set[Setting] = set()  # settings not better than the best one
        self._idle_until = 0
        self._last, self._paused = time.monotonic_ns(), False
        self._begin(_PASSED_OVER)

    def took(self, samples: int) -> Setting | None:
        """Call when the consumer gets a batch. Returns the setting to change to, or None."""
        now = time.monotonic_ns()
        gap, self._last = now - self._last, now
        if self._passing_over:
            self._begin(self._passing_over - 1)
            return None
        # Only once in each measurement: a setting with which all batches take that long has to be judged.
        if gap > _PAUSE_NS and gap * self._best_rate > _PAUSE * samples * 1e9 and not self._paused:
            self._paused = True
            self._begin(0)
            return None
        self._batches += 1
        self._samples += samples
        ns = now - self._since
        if self._batches < _WINDOW_BATCHES or ns < self._window_ns:
            return None
        self._paused = False
        sums = self._read()
        waited = (sums.waited_ns - self._before.waited_ns) / ns
        busy = (sums.native_ns - self._before.native_ns) / ns / self.setting.num_threads
        rate, keeps_up = self._samples / ns * 1e9, waited < _KEEPS_UP
        if self._to_compare:
            problem = "" if keeps_up else "the consumer waits"
            problem = problem if self._fits(sums.memory) else f"{sums.memory / 1e6:,.0f} MB"
            if not problem and ns < _COMPARED_NS:
                self._window_ns += _WINDOW_NS  # the sums are not read for every batch
                return None
            chosen = self._compare(rate, problem, now)
        else:
            self._judge(rate, sums.memory)
            chosen = self._best
            self._slower = self._slower + 1 if rate < self._rate_on_gpu else 0
            if self._slower >= _SLOWER:
                chosen = self._back_to_gpu(now, "it was faster")
            elif not keeps_up and self._most is None:
                chosen = self._back_to_gpu(now, "the consumer waits")
            elif not keeps_up and now >= self._idle_until:
                chosen = self._another(busy, now)
            elif keeps_up and chosen.decode_on != "cpu" and now >= self._compare_from:
                self._to_compare = [chosen, *chosen.decoding_more_on_cpu(), chosen] if self._moves_decoding() else []
        changes, self.setting = chosen != self.setting, chosen
        self._begin((_COMPARED_PASSED_OVER if self._to_compare else _PASSED_OVER) if changes else 0)
        return chosen if changes else None

    def _begin(self, passing_over: int) -> None:
        self._passing_over, self._batches, self._samples, self._window_ns = passing_over, 0, 0, _WINDOW_NS
        self._since, self._before = time.monotonic_ns(), self._read()

    def _fits(self, memory: int) -> bool:
        return self._memory is None or memory <= self._memory

    def _judge(self, rate: float, memory: int) -> None:
        """Compares the measured setting with the best one, and keeps the better."""
        what = f"{self._name(self.setting)}: {rate:,.0f} samples/s"
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

    def _compare(self, rate: float, problem: str, now: int) -> Setting:
        """Notes the rate of one of those compared, or why it can't be used. Returns the setting for the next
        measurement."""
        measured = self._to_compare.pop(0)
        if problem:  # decoding more on the CPU would not be possible either
            self.history.append(f"{self._name(measured)}: {rate:,.0f} samples/s, but {problem}: not kept")
            self._to_compare = self._to_compare[-1:] if len(self._compared) > 1 else []
        else:
            self._compared.append((measured, rate))
        if self._to_compare:
            return self._to_compare[0]
        compared, self._compared, self._compare_from = self._compared, [], now + _COMPARED_AGAIN_NS
        if problem:
            return self._best
        others = dict(compared[1:-1])
        chosen = max(others, key=others.__getitem__, default=self._best)
        before = max(compared[0][1], rate)
        if chosen != self._best and others[chosen] > _COMPARED_GAIN * before:
            if self._best.decode_on == "gpu":  # else it was compared earlier
                self._rate_on_gpu = before
            self._best, self._best_rate, self._slower = chosen, others[chosen], 0
            self._tried.clear()
        for setting, reached in others.items():
            kept = "kept" if setting == self._best else "not kept"
            self.history.append(f"{self._name(setting)}: {reached:,.0f} samples/s: {kept}")
        return self._best

    def _back_to_gpu(self, now: int, why: str) -> Setting:
        self._rate_on_gpu, self._slower = 0.0, 0
        if self._best.decode_on != "gpu":
            self._best = self._best._replace(decode_on="gpu")
            self.history.append(f"{PLACES['gpu']} again, as {why}")
            self._compare_from = now + _COMPARED_AGAIN_NS
        return self._best

    def _another(self, busy: float, now: int) -> Setting:
        """The next setting to try, starting with the likely bottleneck; the best one if none is left."""
        best, most = self._best, self._most
        assert most is not None
        threads = [best._replace(num_threads=n) for n in (best.num_threads * 2, best.num_threads + 1)]
        depths = [best._replace(depth=best.depth + 1), best._replace(depth=best.depth + 2)]
        both = [best._replace(num_threads=best.num_threads * 2, depth=best.depth + 1)]
        where = best.decoding_elsewhere() if self._moves_decoding() else []
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
