# SPDX-License-Identifier: Apache-2.0
"""Noise from a pipeline, and checks for all kinds of noise."""

import numpy as np
import pytest

from penstock import fn, pipeline_def

TYPES = ("u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4")


def disturb(op, samples, layout=None, device="cpu", num_threads=2, seed=5, iterations=1, **kwargs):
    """The samples of the last of some batches."""

    @pipeline_def(batch_size=len(samples), num_threads=num_threads, seed=seed, device_id=0 if device == "gpu" else None)
    def pipe():
        x = fn.external_source(source=lambda: samples, layout=layout)
        columns = {
            k: fn.external_source(source=lambda i, v=v: v) if isinstance(v, list) else v for k, v in kwargs.items()
        }
        return getattr(fn.noise, op)(x.gpu() if device == "gpu" else x, **columns)

    p = pipe()
    for _ in range(iterations):
        (out,) = p.run()
    out = out.as_cpu()
    assert out.layout() == (layout or "")
    return [np.array(out.at(i)) for i in range(len(samples))]


def ragged(dtype, rng=None, high=100):
    rng = rng or np.random.default_rng(0)
    shapes = ((5, 4, 3), (1, 1, 3), (0, 4, 3), (17, 9, 3), (40, 31, 3))
    return [rng.integers(0, high, s).astype(dtype) for s in shapes]


def check_determinism(op, **kwargs):
    """Checks that noise is the same for any number of threads, on both devices, and for single samples; that it differs
    for other seeds, samples and batches; and that inputs are unchanged."""
    for dtype in TYPES:
        samples = ragged(dtype)
        kept = [s.copy() for s in samples]
        first = disturb(op, samples, "HWC", num_threads=1, **kwargs)
        for other in ({"num_threads": 4}, {"device": "gpu"}):
            for i, (a, b) in enumerate(zip(first, disturb(op, samples, "HWC", **other, **kwargs))):
                assert a.dtype == np.dtype(dtype)
                np.testing.assert_array_equal(a, b, err_msg=f"{dtype}, {other}, sample {i}")
        for a, b in zip(samples, kept):
            np.testing.assert_array_equal(a, b)
    for other in ({"seed": 6}, {"iterations": 2}):
        changed = disturb(op, samples, "HWC", **other, **kwargs)
        assert all((a != b).any() for a, b in zip(first, changed) if a.size > 3)
    alike = disturb(op, [samples[4]] * 2, "HWC", **kwargs)
    assert (alike[0] != alike[1]).any()
    frames = disturb(op, [np.stack([samples[4]] * 2)], "FHWC", **kwargs)[0]
    assert (frames[0] != frames[1]).any()


def check_types(op):
    for x in (np.zeros(3, "f8"), np.zeros(3, "f2"), np.zeros(3, "?")):
        with pytest.raises(RuntimeError, match=f"input type {x.dtype.name} is not supported"):
            disturb(op, [x])
    with pytest.raises(TypeError, match="Did you mean 'seed'"):
        disturb(op, [np.zeros(3, "u1")], sead=1)
