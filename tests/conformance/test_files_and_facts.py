# SPDX-License-Identifier: Apache-2.0
"""Properties of samples, files read by path, and images dumped to files, compared with the real DALI."""

import os

import numpy as np
import pytest

import penstock
from conformance import oracle, report
from harness import _face

ONE = {"HWC": (2, 3, 3), "HW": (2, 3), "FHWC": (2, 2, 2, 3), "": (3,), "CDHW": (1, 2, 3, 4)}


def side_of(side):
    if side == "dali":
        return oracle.dali_fn, oracle.pipeline_def, {"device_id": None}
    return penstock.fn, penstock.pipeline_def, {}


def both(name, graph, n):
    """Asserts that `graph(fn, operator)` gives equal outputs in DALI and penstock, or an error in both. Returns whether
    there are outputs."""
    results = []
    for side in ("dali", "penstock"):
        fn, define, options = side_of(side)

        @define(batch_size=n, num_threads=2, seed=1, prefetch_queue_depth=1, **options)
        def pipe(fn=fn):
            return graph(fn, _face(fn, name))

        try:
            results.append(oracle._collect(pipe().run()))
        except Exception as e:
            results.append(oracle.Result(error=oracle._cause(e)))
    tally = report.tally(name)
    tally.cases += 1
    wrong = oracle.compare(*results, oracle.Bound(), tally)
    assert not wrong, wrong
    return not results[0].error


@pytest.mark.parametrize("layout", ONE)
@pytest.mark.parametrize("dtype", ["u1", "f4", "i8", "?"])
def test_layout(layout, dtype):
    samples = [np.zeros(ONE[layout], dtype)] * 3
    assert both(
        "get_property",
        lambda fn, op: op(fn.external_source(lambda i: samples, layout=layout or None), key="layout"),
        3,
    )


def test_source_info(tmp_path):
    for folder in ("x", "y y"):
        (tmp_path / folder).mkdir()
        for name in ("1.bin", "\u00e4.bin"):
            (tmp_path / folder / name).write_bytes(b"abc")
    names = [str(tmp_path / "x" / "1.bin"), str(tmp_path / "y y" / "1.bin")]
    (tmp_path / "list").write_text("x/1.bin 3\ny y/1.bin 4\n")
    for n, given in (
        (4, {"file_root": str(tmp_path), "file_filters": ["*.bin"]}),
        (2, {"files": names}),
        (2, {"files": ["x/1.bin", "y y/\u00e4.bin"], "file_root": str(tmp_path)}),
        (2, {"file_list": str(tmp_path / "list")}),
    ):
        assert both("get_property", lambda fn, op, g=given: op(fn.readers.file(**g)[0], key="source_info"), n)
    assert not both("get_property", lambda fn, op: op(fn.external_source(lambda i: [np.zeros(1)]), key="color"), 1)


CONTENTS = [b"hello", bytes(range(256)) * 33, b"\0"]


@pytest.mark.parametrize("dtype", ["u1", "i1"])
@pytest.mark.parametrize("kwargs", [{}, {"dont_use_mmap": True}, {"use_o_direct": True}])
@pytest.mark.parametrize("ending", [b"", b"\0", b"\0rest", b"\0\0"])
def test_read(tmp_path, dtype, kwargs, ending):
    samples = []
    for i, content in enumerate(CONTENTS):
        (tmp_path / f"{i} \u2603").write_bytes(content)
        samples.append(np.frombuffer(os.fsencode(tmp_path / f"{i} \u2603") + ending, dtype))
    assert both("io.file.read", lambda fn, op: op(fn.external_source(lambda i: samples), **kwargs), 3)


def test_read_an_empty_file(tmp_path):
    """DALI can't if it uses mmap."""
    (tmp_path / "x").write_bytes(b"")
    samples = [np.frombuffer(os.fsencode(tmp_path / "x"), "u1")]
    assert both("io.file.read", lambda fn, op: op(fn.external_source(lambda i: samples), dont_use_mmap=True), 1)


@pytest.mark.parametrize("path", ["", "/nothing/here", "/tmp"])
@pytest.mark.parametrize("dtype", ["u1", "i4"])
def test_nothing_to_read(path, dtype):
    samples = [np.frombuffer(path.encode(), "u1").astype(dtype)]
    assert not both("io.file.read", lambda fn, op: op(fn.external_source(lambda i: samples)), 1)


@pytest.mark.parametrize("suffix", [{}, {"suffix": "a"}])
@pytest.mark.parametrize(
    "shape, dtype, layout, works",
    [
        ((4, 5, 3), "u1", "HWC", True),
        ((4, 5, 1), "u1", "HWC", True),
        ((1, 1, 3), "u1", "HWC", True),
        ((9, 70, 3), "u1", "", True),
        ((1, 1, 1), "u1", "", True),
        ((70, 1, 3), "u1", "HWC", True),
        ((1, 300, 1), "u1", "HWC", True),
        ((33, 17, 3), "u1", "HWC", True),
        ((64, 64, 1), "u1", "", True),
        ((2, 3, 3), "u1", "", True),
        ((4, 5, 4), "u1", "HWC", False),
        ((4, 5), "u1", "HW", False),
        ((2, 4, 5, 3), "u1", "FHWC", False),
        ((0, 5, 3), "u1", "HWC", False),
        ((4, 5, 3), "f4", "HWC", False),
        ((4, 5, 3), "i4", "HWC", False),
    ],
)
def test_dump_image(tmp_path, monkeypatch, shape, dtype, layout, works, suffix):
    rng = np.random.default_rng(3)
    samples = [rng.integers(0, 128, shape).astype(dtype) for _ in range(3)]
    written = {}

    def graph(fn, op):
        monkeypatch.chdir(written.setdefault(fn.__name__, tmp_path / str(len(written))))
        return op(fn.external_source(lambda i: samples, layout=layout or None), **suffix)

    for i in range(2):
        (tmp_path / str(i)).mkdir()
    assert both("dump_image", graph, 3) == works
    theirs, ours = ({p.name: p.read_bytes() for p in folder.iterdir()} for folder in written.values())
    assert theirs == ours and len(ours) == 3 * works
