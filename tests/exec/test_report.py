# SPDX-License-Identifier: Apache-2.0
"""explain, stats and trace."""

import json
import time

import numpy as np

from penstock import fn, pipeline_def, types


@pipeline_def(batch_size=8, num_threads=2)
def pipe():
    x = fn.external_source(source=lambda i: np.full((8, 64, 64, 3), 7, np.uint8), layout="HWC", name="feed")
    factor = fn.external_source(source=lambda i: np.full(8, 2, np.float32))
    return fn.brightness(fn.brightness(x, brightness=factor), brightness_shift=0.1)


def test_explain_shows_chain_fusion_and_source_lines():
    text = pipe().explain()
    assert text.count("chain, sample by sample") == 1
    assert "scratch memory" in text and "output" in text and "test_report.py:" in text


def sizes_never_again(define):
    rng = np.random.default_rng(3)
    batches = [[np.zeros((*size, 3), "u1") for size in rng.integers(5, 40, (4, 2))] for _ in range(8)]
    p = pipeline_def(lambda: define(fn.external_source(source=batches, layout="HWC")), batch_size=4, num_threads=1)()
    before = p.explain(program=True)
    for _ in batches:
        p.run()
    return before, p.explain(program=True), p.stats()


def test_programs_are_shown():
    before, text, stats = sizes_never_again(lambda x: fn.resize(x, resize_shorter=7, name="small"))
    assert "by rules until a few batches of one kind have come" in before
    lines = [line.strip() for line in text.splitlines()]
    assert "plans of fn.resize small:" in text or any(line.startswith("plans of ") for line in lines)
    assert "program for batches of 4 samples or frames:" in lines
    assert any(line.startswith("check resize_plan(") for line in lines)
    assert any(line.startswith("c") and ": computed rows[4]  arguments of small" in line for line in lines)
    assert (stats["plans"]["by rules"], stats["plans"]["by program"]) == (2, 6)
    assert stats["plans"]["untraceable"] == {} and "6 by program, 2 by rules" in str(stats)


def test_rules_that_can_not_be_traced_are_told(monkeypatch):
    from penstock.core.op import REGISTRY

    flip = REGISTRY["flip"]
    plan = flip.plan

    def unseen(self, a, x, *more):
        np.asarray(x.shape)
        plan(self, a, x, *more)

    monkeypatch.setattr(flip, "plan", unseen)
    _, text, stats = sizes_never_again(lambda x: fn.flip(x, horizontal=1))
    (reasons,) = stats["plans"]["untraceable"].values()
    assert reasons == {"it makes an array of a column (np.asarray, or writing it to an array)": 1}
    assert stats["plans"]["by rules"] == 8 and "can't be traced" in str(stats)
    assert "by rules: it makes an array of a column" in text


def test_explain_tells_windows_that_are_made():
    """Also if its position is an input computed later. Not if the whole image is also an output, or if the producer's
    own input is whole."""

    @pipeline_def(batch_size=1, num_threads=1)
    def define(returned):
        file = np.frombuffer(b"P5 4 4 255 " + bytes(16), np.uint8)
        image = fn.decoders.image(types.Constant(file), name="image")
        given = fn.brightness(types.Constant(np.zeros((4, 4, 3), np.uint8), layout="HWC"), name="given")
        other = fn.decoders.image(types.Constant(file), name="other")
        sliced = fn.slice(other, fn.random.uniform(range=(0, 0.5), shape=[2]) * 0.5, (0.2, 0.2), axis_names="HW")
        return fn.crop(image, crop=(2, 2)), fn.crop(given, crop=(2, 2)), sliced, *([image] if returned else [])

    def line(returned, name):
        return next(t for t in define(returned).explain().splitlines() if t.strip().startswith(f"{name} ="))

    assert "computes only the window that fn.crop reads" in line(False, "image")
    assert "computes only the window that fn.slice reads" in line(False, "other")
    assert "window" not in line(True, "image") and "output" in line(True, "image")
    assert "window" not in line(False, "given")


def test_stats_add_up():
    p = pipe()
    for _ in range(5):
        p.run()
    stats = p.stats()
    d = stats.as_dict()
    assert d["batches"] >= 5 and d["samples"] == 8 * d["batches"]
    assert abs(sum(o["share"] for o in d["operators"].values()) - 1) < 1e-9
    brightness = [o for name, o in d["operators"].items() if "brightness" in name]
    assert len(brightness) == 2 and all(o["ms_per_sample"] > 0 for o in brightness)
    assert "samples/s" in str(stats) and "external_source 'feed'" in str(stats)
    p.reset_stats()
    assert p.stats()["batches"] == 0


def test_python_time_is_that_of_work_and_not_of_waiting():
    def source(i):
        time.sleep(0.02)
        end = time.thread_time() + 0.005
        while time.thread_time() < end:
            pass
        return np.zeros((2, 4, 4, 3), np.uint8)

    @pipeline_def(batch_size=2, num_threads=1)
    def define():
        return fn.brightness(fn.external_source(source, layout="HWC"), brightness=2.0)

    p = define()
    for _ in range(8):
        p.run()
    stats = p.stats()
    assert 4 <= stats["python_ms_per_batch"] < 15  # 5 in each; one in progress may count on either side
    assert stats["python_share_of_a_core"] < 0.6
    assert 0 <= stats["native_ms_per_batch"] < 2


def test_trace_is_what_perfetto_reads(tmp_path):
    p = pipe()
    for _ in range(3):
        p.run()
    p.trace(tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    spans = [e for e in events if e["ph"] == "X"]
    names = {e["args"]["name"] for e in events if e["ph"] == "M"}
    assert "loading" in names and any(f"thread {k}" in names for k in range(3))  # 2: the requesting thread
    kernels = [e for e in spans if e["name"] == "brightness" and "sample" in e["args"]]
    assert len(kernels) >= 3 * 8 * 2 and all(e["dur"] >= 0 for e in kernels)
    # Two steps of one sample run on one thread, one after the other.
    first = sorted((e for e in kernels if e["args"] == {"iteration": 0, "sample": 3}), key=lambda e: e["ts"])
    assert (
        len(first) == 2
        and first[0]["tid"] == first[1]["tid"]
        and first[0]["ts"] + first[0]["dur"] <= first[1]["ts"] + 1
    )
