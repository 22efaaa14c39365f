# SPDX-License-Identifier: Apache-2.0
"""Which batches are recorded, and who waits for a record."""

import threading

from penstock.exec.cpu.batch_kinds import Kinds
from penstock.exec.gpu import compiled_plan as gpu_compiled

KIND, OTHER = (6, "u1"), (7, "u1")


def seen_twice():
    kinds = Kinds(100)
    assert not any(kinds.pays(k) for k in (KIND, OTHER, KIND, OTHER))
    return kinds


def test_one_batch_of_a_kind_is_recorded_at_a_time():
    kinds = seen_twice()
    with kinds.tracing(KIND):
        assert not any(kinds.pays(KIND) for _ in range(20))
        assert kinds.pays(OTHER)
    assert kinds.pays(KIND), "batches that came meanwhile must not count"


def test_a_failure_does_not_end_recording():
    kinds = seen_twice()
    try:
        with kinds.tracing(KIND):
            raise KeyError
    except KeyError:
        pass
    assert kinds.pays(KIND)


def replays(idle):
    made = object.__new__(gpu_compiled.GpuPlanCache)
    made._waited, made._idle = {}, {KIND: idle}
    return made


def test_a_record_that_is_in_use_is_waited_for(monkeypatch):
    monkeypatch.setattr(gpu_compiled, "_LOOKS", 1 << 20)
    idle = []
    threading.Timer(1e-3, idle.append, ["a record"]).start()
    assert replays(idle)._given_back(KIND) == "a record"


def test_another_is_recorded_if_all_are_often_in_use():
    idle = ["a record"] * 99
    made = replays(idle)
    got = [made._given_back(KIND) is None for _ in range(70)]
    assert [i + 1 for i, none in enumerate(got) if none] == [4, 16, 64]


def test_nobody_waits_for_ever(monkeypatch):
    monkeypatch.setattr(gpu_compiled, "_LOOKS", 3)
    assert replays([])._given_back(KIND) is None
