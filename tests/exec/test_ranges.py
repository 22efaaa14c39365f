# SPDX-License-Identifier: Apache-2.0
"""Ranges of stages in profiler traces: PyTorch's, and NVTX tools, here one that logs them."""

import os
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from penstock import fn, pipeline_def
from penstock.exec import nvtx, ranges

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"
CHAIN = "penstock: flip -> brightness"


@pipeline_def(batch_size=4, num_threads=2)
def flipped(background=True):
    images = fn.external_source(
        source=lambda: [np.ones((8, 8, 3), "u1")] * 4, layout="HWC", background=background, name="images"
    )
    return fn.python_function(fn.brightness(fn.flip(images), brightness=2.0), function=lambda x: x + 1)


def of_all_threads():
    torch = pytest.importorskip("torch")
    config = torch._C._profiler._ExperimentalConfig
    if "profile_all_threads" not in (config.__init__.__doc__ or ""):
        pytest.skip("this PyTorch profiles the thread that asks for it only")
    return config(profile_all_threads=True)


def test_pytorchs_profiler():
    """The stages, on their own threads, in addition to the model's operators on the training thread."""
    config = of_all_threads()
    import torch

    cpu = [torch.profiler.ProfilerActivity.CPU]
    model, pipe = torch.nn.Linear(3, 2), flipped()
    with torch.profiler.profile(activities=cpu, experimental_config=config) as profile:
        for _ in range(3):
            (images,) = pipe.run()
            model(torch.from_dlpack(images.as_tensor()).float()).sum().backward()
    threads = defaultdict(set)
    for event in profile.events():
        threads[event.name].add(event.thread)
    assert {CHAIN, "penstock: python_function", "penstock: load external_source"} <= set(threads)
    assert not threads[CHAIN] & threads["aten::linear"]
    assert threads["penstock: wait for a batch"] == threads["aten::linear"]


def test_profiler_of_one_thread():
    """By default, PyTorch profiles only the training thread: its waiting time is included."""
    torch = pytest.importorskip("torch")
    pipe = flipped()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        pipe.run()
    assert [e.count for e in profile.key_averages() if e.key == "penstock: wait for a batch"] == [1]
    assert ranges.watching() is None or os.environ.get("NVTX_INJECTION64_PATH")


def test_nobody_watches(monkeypatch):
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    monkeypatch.setattr(ranges, "_tool", [])
    assert ranges.watching() is None
    assert ranges.in_range("x") is ranges.in_range("y")  # no object is created


@pytest.fixture(scope="module")
def tool(tmp_path_factory):
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    path = tmp_path_factory.mktemp("nvtx") / "tool.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-pthread", "-o", path, HERE / "nvtx_tool.c"], check=True)
    return path


def logged(tool, tmp_path, program):
    """The lines (thread, "push" or "pop", domain, name) of a program that runs with the tool."""
    log = tmp_path / "log.txt"
    environment = {**os.environ, "NVTX_INJECTION64_PATH": str(tool), "NVTX_TOOL_LOG": str(log)}
    environment["PYTHONPATH"] = os.pathsep.join([str(SOURCE), str(HERE)])
    subprocess.run([sys.executable, "-c", program], check=True, env=environment, timeout=300)
    lines = [line.split(" ", 2) for line in log.read_text().splitlines()]
    return [(thread, what, *rest.split("|")) for thread, what, rest in lines]


def ranges_of(lines):
    """The names of the ranges, by thread; each ends on the thread on which it began."""
    names, open_ranges = defaultdict(list), defaultdict(list)
    for thread, what, domain, name in lines:
        if what == "push":
            open_ranges[thread, domain].append(name)
            names[thread].append(f"{domain}|{name}")
        else:
            open_ranges[thread, domain].pop()
    assert not any(open_ranges.values())
    return names


def test_the_tool_reads_what_nvtx_says(tool, tmp_path):
    """The tool follows NVTX's headers: it works with NVIDIA's own package."""
    pytest.importorskip("nvtx")
    program = "import nvtx\nwith nvtx.annotate('mine', domain='theirs'): pass"
    assert list(ranges_of(logged(tool, tmp_path, program)).values()) == [["theirs|mine"]]


@pytest.mark.parametrize("torch_profiles", [False, True])
def test_nvtx(tool, tmp_path, torch_profiles):
    if torch_profiles:
        pytest.importorskip("torch")
    program = f"""
from contextlib import nullcontext
from test_ranges import flipped
with __import__("torch").profiler.profile() if {torch_profiles} else nullcontext():
    pipe = flipped()
    for _ in range(3):
        pipe.run()
    pipe.close()
"""
    names = ranges_of(logged(tool, tmp_path, program))
    every = [name for of_thread in names.values() for name in of_thread]
    for name in (CHAIN, "penstock: python_function", "penstock: load external_source", "penstock: wait for a batch"):
        assert every.count(f"penstock|{name}") >= 3
    assert len(names) > 1


@pytest.mark.parametrize("content", [None, b"not a library"])
def test_tool_that_does_not_work(tmp_path, monkeypatch, content):
    path = tmp_path / "tool.so"
    if content:
        path.write_bytes(content)
    monkeypatch.setenv("NVTX_INJECTION64_PATH", str(path))
    with pytest.warns(RuntimeWarning, match="no NVTX ranges, as NVTX_INJECTION64_PATH names no tool that works"):
        assert nvtx.attached() is None


def test_tool_that_refuses(tmp_path, monkeypatch, tool):
    """A library that is not a tool."""
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "libc.so.6")
    with pytest.warns(RuntimeWarning, match="InitializeInjectionNvtx2"):
        assert nvtx.attached() is None
