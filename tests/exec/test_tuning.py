# SPDX-License-Identifier: Apache-2.0
"""Autotuning: threads and prefetched batches, selected while a pipeline runs."""

import threading
import time

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.exec.scheduling import tuning
from penstock.exec.scheduling.tuning import Reading, Setting, Tuner

MOST = Setting(16, 8)


class Machine:
    """Simulates a pipeline whose speed is a function of its setting, with its own clock."""

    def __init__(
        self, monkeypatch, start, speed, most=MOST, memory=None, used=lambda setting: 0, training=1e9, moves=False
    ):
        self.ns = self.waited = self.worked = 0
        # `training`: samples/s that the consumer takes, or a function of the setting.
        self.speed, self.used = speed, used
        self.training = training if callable(training) else lambda setting: training
        monkeypatch.setattr(tuning.time, "monotonic_ns", lambda: self.ns)
        self.setting = start
        self.tuner = Tuner(start, most, memory, self.read, lambda: moves)
        self.settings = [start]

    def read(self):
        return Reading(self.waited, self.worked, self.used(self.setting))

    def run(self, seconds):
        end = self.ns + seconds * 1e9
        while self.ns < end:
            training = self.training(self.setting)
            rate = min(self.speed(self.setting), training)  # samples/s that arrive
            ns = int(32 / rate * 1e9)
            self.ns += ns
            self.worked += int(ns * 0.95 * self.setting.num_threads)
            self.waited += max(ns - int(32 / training * 1e9), 0)
            changed = self.tuner.took(32)
            if changed is not None:
                assert changed != self.setting
                self.setting = changed
                self.settings.append(changed)


def with_cores(cores):
    """Speed with `cores` cores. One prefetched batch hides the consumer's part, and a second one some of the noise."""
    return lambda s: 800 * min(s.num_threads, cores) * (0.8, 0.96, 1)[min(s.depth, 3) - 1]


@pytest.mark.parametrize("cores", [1, 2, 3, 6, 12, 16])
@pytest.mark.parametrize("start", [Setting(1, 1), Setting(2, 2), Setting(1, 6)])
def test_climbs_to_what_is_best(monkeypatch, cores, start):
    speed = with_cores(cores)
    m = Machine(monkeypatch, start, speed)
    m.run(30)
    best = max(speed(Setting(n, d)) for n in range(1, 17) for d in range(1, 9))
    assert speed(m.setting) >= 0.95 * best, m.tuner.history


def test_more_threads_that_make_it_slower_are_not_kept(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 2), lambda s: 1000 * min(s.num_threads, 4) - 200 * max(s.num_threads - 4, 0))
    m.run(30)
    assert m.setting.num_threads == 4
    assert any(line.startswith("8 threads") and line.endswith("not kept") for line in m.tuner.history)


def test_nothing_is_tried_where_the_pipeline_keeps_up(monkeypatch):
    m = Machine(monkeypatch, Setting(2, 2), with_cores(16), training=1000)
    m.run(60)
    assert m.settings == [Setting(2, 2)]


def test_stops_at_what_the_training_can_take(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 2), with_cores(16), training=2500)
    m.run(30)
    assert m.setting.num_threads == 4


def test_settles(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 1), with_cores(4))
    m.run(25)
    n = len(m.settings)
    m.run(10)
    assert len(m.settings) == n


def test_tries_again_later(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 1), with_cores(2))
    m.run(25)
    assert m.setting.num_threads == 2
    m.speed = with_cores(8)  # other programs have ended
    m.run(60)
    assert m.setting.num_threads >= 8


def test_stays_within_the_most(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 1), lambda s: 100 * s.num_threads * s.depth, most=Setting(3, 4))
    m.run(60)
    assert m.setting == Setting(3, 4)
    assert all(s.num_threads <= 3 and s.depth <= 4 for s in m.settings)


def test_memory(monkeypatch):
    m = Machine(monkeypatch, Setting(1, 1), lambda s: 100 * s.depth, memory=10**9, used=lambda s: s.depth * 300 * 10**6)
    m.run(60)
    assert m.setting.depth == 3
    assert any("1,200 MB: not kept" in line for line in m.tuner.history)


# Where mixed decoders decode


def by_place(gpu, cpu, both=None):
    """A function of the setting: a number of samples/s for each place. Batches that alternate take the mean time."""
    rates = {"gpu": gpu, "cpu": cpu, "both": both or 2 / (1 / gpu + 1 / cpu)}
    return lambda s: rates[s.decode_on]


@pytest.mark.parametrize(
    "on_gpu, on_cpu, chosen",
    [(1000, 1020, "cpu"), (1000, 1004, "cpu"), (1000, 1002, "gpu"), (1000, 1000, "gpu"), (1000, 900, "gpu")],
)
def test_decodes_where_the_training_is_faster(monkeypatch, on_gpu, on_cpu, chosen):
    """Both places keep up with the training, which loses by what decoding takes of the GPU."""
    m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, training=by_place(on_gpu, on_cpu), moves=True)
    m.run(60)
    assert m.setting == Setting(8, 2, chosen), m.tuner.history
    if chosen == "cpu":
        assert m.tuner.history[-1] == f"8 threads, 2 batches ahead, decoding on the CPU: {on_cpu:,} samples/s: kept"
        assert [s.decode_on for s in m.settings] == ["gpu", "both", "cpu", "gpu", "cpu"]
    else:
        assert [line.endswith(": not kept") for line in m.tuner.history] == [False, True, True]
        assert [s.decode_on for s in m.settings] == ["gpu", "both", "cpu", "gpu"]


def test_a_cpu_that_can_decode_only_a_part_decodes_every_other_batch(monkeypatch):
    speed, training = by_place(5000, 900, 1500), by_place(1000, 1040, 1020)
    m = Machine(monkeypatch, Setting(8, 2), speed, training=training, moves=True)
    m.run(60)
    assert m.setting == Setting(8, 2, "both"), m.tuner.history
    assert [s.decode_on for s in m.settings] == ["gpu", "both", "cpu", "gpu", "both"]
    on_cpu, every_other = list(m.tuner.history)[-2:]
    assert on_cpu.startswith("8 threads, 2 batches ahead, decoding on the CPU: ") and on_cpu.endswith(": not kept")
    assert every_other == "8 threads, 2 batches ahead, decoding every other batch on the CPU: 1,020 samples/s: kept"
    n = len(m.settings)
    m.run(500)
    assert len(m.settings) == n  # it is compared seldom


def test_a_training_that_becomes_faster_by_itself_is_no_reason(monkeypatch):
    m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, training=lambda s: 1000 + m.ns / 1e8, moves=True)
    m.run(20)
    assert m.setting.decode_on == "gpu" and m.tuner.history[-1].endswith(": not kept")


@pytest.mark.parametrize("paused_in", ["both", "cpu"])
def test_a_pause_of_the_training_is_not_measured(monkeypatch, paused_in):
    """While a place is measured, the training evaluates its model for two seconds."""

    def history(pause):
        m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, training=by_place(1000, 1020), moves=True)
        while m.setting.decode_on != paused_in or not m.tuner._to_compare:
            m.run(0.1)
        m.run(1.5)
        m.ns += pause
        m.run(30)
        return list(m.tuner.history)

    assert history(0)[-1] == "8 threads, 2 batches ahead, decoding on the CPU: 1,020 samples/s: kept"
    assert history(2_000_000_000) == history(0)


def test_a_setting_that_is_very_slow_is_judged(monkeypatch):
    """Each batch takes a second with two batches ahead: no pause, and reason enough not to keep it."""
    m = Machine(monkeypatch, Setting(1, 1), lambda s: 1000 if s.depth == 1 else 32, most=Setting(1, 2))
    m.run(40)
    assert [line for line in m.tuner.history if line.startswith("1 thread, 2 batches")][0].endswith(": not kept")


def test_a_place_that_becomes_slower_is_left(monkeypatch):
    """The training is faster while the CPU decodes; then other processes need the CPU, too, and it is slower than it
    was with the GPU, but never waits for a batch."""
    busy_from = 30e9

    def training(setting):
        return {"gpu": 1000, "both": 1010, "cpu": 1020 if m.ns < busy_from else 900}[setting.decode_on]

    for most in (None, Setting(8, 2)):
        m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, most=most, training=training, moves=True)
        m.run(29)
        assert m.setting.decode_on == "cpu"
        m.run(5)
        assert m.setting.decode_on == "gpu"
        assert m.tuner.history[-1].endswith("decoding on the GPU again, as it was faster")
        m.run(500)
        assert m.setting.decode_on == "gpu"  # it is not tried again at once


def test_nothing_is_chosen_while_the_consumer_waits_with_the_gpu(monkeypatch):
    m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, training=by_place(1000, 1040), moves=True)
    while "cpu" not in [s.decode_on for s in m.settings]:
        m.run(0.1)
    m.run(1)
    m.speed = by_place(900, 5000)  # the second measurement of the GPU fails
    m.run(4)
    assert [s.decode_on for s in m.settings][:4] == ["gpu", "both", "cpu", "gpu"]
    assert m.tuner.history[-1] == "8 threads, 2 batches ahead: 900 samples/s, but the consumer waits: not kept"


def test_a_cpu_too_slow_is_left_at_once(monkeypatch):
    m = Machine(monkeypatch, Setting(4, 2), by_place(5000, 200), training=1000, moves=True)
    m.run(5)
    before = m.ns
    while m.setting.decode_on == "both" or len(m.settings) < 3:
        m.run(0.1)
    assert [s.decode_on for s in m.settings] == ["gpu", "both", "gpu"]
    assert m.tuner.history[-1].endswith(": not kept")
    m.run(300)
    assert len(m.settings) == 3 and m.ns > before  # it is compared seldom
    m.run(400)
    assert len(m.settings) == 5


def test_memory_limits_where_to_decode(monkeypatch):
    m = Machine(
        *(monkeypatch, Setting(8, 2), lambda s: 5000),
        memory=10**9,
        used=lambda s: 10**8 if s.decode_on == "gpu" else 10**9 + 1,
        training=by_place(1000, 1100),
        moves=True,
    )
    m.run(60)
    assert [s.decode_on for s in m.settings] == ["gpu", "both", "gpu"]
    assert m.tuner.history[-1].endswith(": not kept")


def test_sums_are_read_once_a_window(monkeypatch):
    """Also while places are compared: reading them for every batch would cost what is to be measured."""
    m = Machine(monkeypatch, Setting(8, 2), lambda s: 5000, training=by_place(1000, 1020), moves=True)
    read, reads = m.tuner._read, []
    m.tuner._read = lambda: reads.append(m.ns) or read()
    m.run(20)
    assert m.setting.decode_on == "cpu"
    assert len(reads) < 3 * 20e9 / tuning._WINDOW_NS


def test_decoding_elsewhere_where_the_consumer_waits(monkeypatch):
    m = Machine(monkeypatch, Setting(4, 4), by_place(700, 900), most=Setting(4, 4), training=1000, moves=True)
    m.run(30)
    assert m.setting.decode_on == "cpu"
    m = Machine(monkeypatch, Setting(4, 4, "cpu"), by_place(900, 700), most=Setting(4, 4), training=1000, moves=True)
    m.run(30)
    assert m.setting.decode_on == "gpu"


def test_only_the_place_is_chosen(monkeypatch):
    """Without `autotune`: threads and depth stay; a consumer that waits gets the GPU back, and no comparison."""
    m = Machine(monkeypatch, Setting(4, 2), lambda s: 5000, most=None, training=by_place(1000, 1020), moves=True)
    m.run(60)
    assert [s.decode_on for s in m.settings] == ["gpu", "both", "cpu", "gpu", "cpu"]
    m.speed = by_place(5000, 900)  # other programs take the cores
    m.run(3)
    assert m.setting == Setting(4, 2) and m.tuner.history[-1] == "decoding on the GPU again, as the consumer waits"
    n = len(m.settings)
    m.run(500)
    assert len(m.settings) == n
    m.run(200)
    assert m.settings[n] == Setting(4, 2, "both")
    m = Machine(monkeypatch, Setting(4, 2), by_place(700, 900), most=None, training=1000, moves=True)
    m.run(60)
    assert m.settings == [Setting(4, 2)]


def test_decoding_stays_where_nothing_can_be_moved(monkeypatch):
    m = Machine(monkeypatch, Setting(4, 4), by_place(700, 900), most=Setting(4, 4), training=by_place(800, 1000))
    m.run(60)
    assert m.settings == [Setting(4, 4)]


# In a pipeline


@pipeline_def(batch_size=8, seed=5)
def noise():
    x = fn.random.uniform(range=(0, 255), shape=(64, 64, 3), dtype=None)
    return fn.gaussian_blur(fn.reshape(x, layout="HWC"), sigma=2.0), fn.random.coin_flip()


def test_batches_do_not_depend_on_it(monkeypatch):
    monkeypatch.setattr(tuning, "_WINDOW_NS", 1_000_000)
    monkeypatch.setattr(tuning, "_GAIN", 0.0)  # every change is kept
    monkeypatch.setattr(tuning, "_KEEPS_UP", -1.0)  # and tried, even if the consumer hardly waits
    pipe = noise(num_threads=1, prefetch_queue_depth=1, cpu_budget=6)
    plain = noise(num_threads=2)
    before = threading.active_count()
    for _ in range(300):
        for a, b in zip(pipe.run(), plain.run()):
            assert (a.as_array() == b.as_array()).all()
    assert pipe.num_threads > 1 and pipe.prefetch_queue_depth > 1
    assert threading.active_count() <= before + 8  # Python's threads don't grow with changes
    assert "autotuning:" in pipe.explain() and "kept" in pipe.explain()


def native_threads():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Threads:"))


def test_threads_of_before_end(monkeypatch):
    monkeypatch.setattr(tuning, "_WINDOW_NS", 1_000_000)
    monkeypatch.setattr(tuning, "_WINDOW_BATCHES", 1)
    monkeypatch.setattr(tuning, "_AGAIN_NS", 0)
    monkeypatch.setattr(tuning, "_GAIN", 1e9)  # no change is kept
    pipe = noise(num_threads=1, prefetch_queue_depth=1, cpu_budget=4)
    pipe.run()
    start = native_threads()
    for _ in range(400):
        pipe.run()
    assert len(pipe.explain()) and native_threads() <= start + 8
    pipe.close()


def test_a_choice_can_be_given_again(monkeypatch):
    from penstock import Pipeline

    monkeypatch.setattr(tuning, "_WINDOW_NS", 1_000_000)
    monkeypatch.setattr(tuning, "_GAIN", 0.0)
    pipe = noise(num_threads=1, prefetch_queue_depth=1, cpu_budget=3)
    for _ in range(200):
        pipe.run()
    again = Pipeline.deserialize(pipe.serialize())
    assert (again.num_threads, again.cpu_queue_size) == (pipe.num_threads, pipe.prefetch_queue_depth) == (3, 8)


def test_without_running_ahead_only_threads_change(monkeypatch):
    monkeypatch.setattr(tuning, "_WINDOW_NS", 1_000_000)
    monkeypatch.setattr(tuning, "_GAIN", 0.0)
    pipe = noise(num_threads=1, exec_pipelined=False, cpu_budget=3)
    for _ in range(100):
        pipe.run()
    assert pipe.num_threads == 3 and pipe._runner.most_pending() == 1


def test_off_by_default():
    pipe = noise(num_threads=1)
    pipe.run()
    assert pipe._runner.tuner is None and "autotuning" not in pipe.explain()


@pytest.mark.parametrize("name", ["cpu_budget", "memory_budget"])
@pytest.mark.parametrize("value", [0, -1, "2"])
def test_budgets_are_checked(name, value):
    with pytest.raises(ValueError, match=f"{name} takes a positive number; got"):
        noise(**{name: value})


def test_a_slow_source_is_not_called_more_often(monkeypatch):
    monkeypatch.setattr(tuning, "_WINDOW_NS", 1_000_000)
    calls = []

    def source():
        calls.append(1)
        time.sleep(0.001)
        return [np.zeros(4, "u1")] * 8

    def define():
        return fn.external_source(source=source)

    pipe = pipeline_def(define, batch_size=8, num_threads=1, autotune=True, prefetch_queue_depth=1)()
    for _ in range(60):
        pipe.run()
    assert len(calls) <= 60 + 8  # maximum number of prefetched batches
