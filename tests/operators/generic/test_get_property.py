# SPDX-License-Identifier: Apache-2.0
"""Properties of samples: source and layout, on both devices, without a copy of the data."""

import numpy as np
import pytest

from harness import op_test
from penstock import fn, pipeline_def, types

SAMPLES = [np.zeros((2, 3, 1), "u1"), np.ones((0, 3, 1), "u1")]


def _letters(layout):
    return op_test(
        "get_property",
        lambda x, key: np.frombuffer(layout.encode(), "u1"),
        dtypes=("u1", "f4"),
        layouts=(layout,),
        args=[{"key": "layout"}],
        errors=[({"key": "color"}, ValueError, "key takes source_info or layout; got 'color'")],
    )


TestImages, TestSequences, TestPlanes, TestNone = _letters("HWC"), _letters("FHWC"), _letters("HW"), _letters("")


@pytest.fixture
def files(tmp_path):
    for i, name in enumerate(("a", "long name", "\u00e4")):
        (tmp_path / "class").mkdir(exist_ok=True)
        (tmp_path / "class" / name).write_bytes(b"x" * (i + 1))
    return tmp_path


def text(batch):
    return [bytes(np.asarray(batch.at(i))).decode() for i in range(len(batch))]


def test_where_files_came_from(files):
    @pipeline_def(batch_size=3)
    def pipe():
        data, label = fn.readers.file(file_root=str(files), file_filters=["*"])
        copied = data + 1
        return fn.get_property(data, key="source_info"), label.source_info(), copied.property("source_info")

    want = ["class/a", "class/long name", "class/\u00e4"]
    assert [text(out) for out in pipe().run()] == [want] * 3


def test_a_file_that_replaces_another_says_its_own_name(files):
    (files / "class" / "a").write_bytes(b"")

    @pipeline_def(batch_size=2, on_error="replace")
    def pipe():
        data, _ = fn.readers.file(file_root=str(files), file_filters=["*"])
        return data, data.source_info()

    data, names = pipe().run()
    assert text(data) == [{"class/long name": "xx", "class/\u00e4": "xxx"}[name] for name in text(names)]


def test_on_the_gpu_only_what_is_known_travels():
    @pipeline_def(batch_size=2, device_id=0)
    def pipe():
        x = fn.external_source(source=lambda i: SAMPLES, layout="HWC").gpu()
        return fn.get_property(x, key="layout"), x.property("layout"), x.property("layout", device="gpu"), x.shape()

    p = pipe()
    there, here, moved, shape = p.run()
    assert type(there) is type(moved) is not type(here)
    assert [text(b) for b in (there.as_cpu(), here, moved.as_cpu())] == [["HWC"] * 2] * 3
    assert [shape.at(i).tolist() for i in range(2)] == [[2, 3, 1], [0, 3, 1]]
    assert not any("download" in str(s) for s in p._executor.plan.stages)


def test_without_a_name():
    @pipeline_def(batch_size=2)
    def pipe():
        fed = fn.external_source(source=lambda i: SAMPLES)
        return fn.get_property(types.Constant(3), key="source_info"), fed.source_info()

    constant, fed = pipe().run()
    assert text(constant) == ["", ""]
    assert text(fed) == ["", ""]
