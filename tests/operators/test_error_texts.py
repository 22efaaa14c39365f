# SPDX-License-Identifier: Apache-2.0
"""Errors say what was given, what is accepted and what to do, also for unlikely arguments."""

import ctypes

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.core import kernels
from penstock.core.op import REGISTRY
from penstock.operators.random import choice

IMAGE = np.zeros((4, 5, 3), "u1")


def told(call, *inputs, layout=None, **kwargs):
    @pipeline_def(batch_size=2)
    def pipe():
        return call(*(fn.external_source(lambda i, x=x: [x, x], layout=layout) for x in inputs), **kwargs)

    with pytest.raises((RuntimeError, ValueError, TypeError)) as e:
        pipe().run()
    return str(e.value)


@pytest.mark.parametrize(
    "call, kwargs",
    [
        (fn.pad, {"axis_names": "W"}),
        (fn.squeeze, {"axis_names": "W"}),
        (fn.tensor_resize, {"axis_names": "W", "sizes": [3]}),
        (fn.normalize, {"axis_names": "W"}),
        (fn.reductions.sum, {"axis_names": "W"}),
        (lambda x, **kw: fn.cat(x, x, **kw), {"axis_name": "W"}),
    ],
)
def test_axes_by_name_without_a_layout(call, kwargs):
    text = told(call, IMAGE, **kwargs)
    assert "axis 'W'" in text and "has no layout" in text and "fn.reshape(x, layout=...)" in text


def test_sizes_are_told_shortly():
    assert "[1e+30, 1e+30]" in told(fn.resize, IMAGE, layout="HWC", size=[1e30, 1e30])
    text = told(fn.transforms.crop, from_start=[float("nan")] * 6)
    assert "from_start, from_end, to_start, to_end describe no finite transform" in text and len(text) < 1200


@pytest.mark.parametrize("limited", ["to_end", "shape", "like"])
def test_no_memory_for_choices(monkeypatch, limited):
    """The error has the operator, the shapes and the bytes of two samples of 2 x 3 choices: a byte and an index
    each."""

    def none(*args):
        raise MemoryError

    monkeypatch.setattr(choice, "fill", none)
    kwargs = {"shape": [2, 3]} if limited == "shape" else {}
    more = {"to_end": lambda: {"shape": types.Constant(np.int32([2, 3]))}, "shape": dict, "like": dict}[limited]
    inputs = (np.uint8([1, 2, 3]), np.zeros((2, 3), "u1"))[: 1 + (limited == "like")]
    text = told(lambda *x: fn.random.choice(*x, **kwargs, **more()), *inputs)
    assert "fn.random.choice" in text
    assert "could not allocate 108 bytes for choices of the shapes [[2, 3], [2, 3]]" in text


def test_no_memory_elsewhere(monkeypatch):
    def none(*args):
        raise MemoryError

    monkeypatch.setattr(REGISTRY["copy"], "outputs", none)
    text = told(fn.copy, IMAGE)
    assert "fn.copy" in text and "out of memory: what the operator makes" in text and "smaller" in text


def test_no_memory_for_a_sample():
    """The temporary memory of a kernel."""
    outcome = kernels.Outcome(1, 1, 1)
    outcome.errors = ctypes.create_string_buffer(b"std::bad_alloc", kernels.ERROR_SIZE)
    assert outcome.reason(0).startswith("out of memory")


def test_masks_beyond_all_pictures():
    text = told(fn.experimental.dilate, IMAGE, layout="HWC", mask_size=2**31 - 1)
    assert "`mask_size` is at most 16777216, got [2147483647, 2147483647]" in text


def test_a_sample_without_a_source_is_told_once():
    @pipeline_def(batch_size=2)
    def pipe():
        return fn.resize(types.Constant(IMAGE, layout="HWC"), size=float("nan"))

    with pytest.raises(RuntimeError, match=r"\nSample 0 of iteration 0\n"):
        pipe().run()


def test_no_type_twice():
    text = told(lambda x: fn.gaussian_blur(x, sigma=1.0, dtype=types.INT32), np.zeros((4, 5, 3), "f4"), layout="HWC")
    assert text.endswith("supported: float32") or "supported: float32\n" in text


def test_no_axes_to_squeeze():
    assert "scalars have none to leave out" in told(fn.squeeze, np.uint8(3), axes=[0])
