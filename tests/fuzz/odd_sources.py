# SPDX-License-Identifier: Apache-2.0
"""Sources that give odd arrays: for fuzz_operators.py. What a pipeline gives out has to be what NumPy sees in them, or
there is an error that says what was wrong with the source."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from penstock import fn, pipeline_def

_SHAPES = ((), (0,), (1,), (3,), (4, 5), (0, 3), (2, 3, 4), (7, 1, 3), (1,) * 8, (1,) * 9, (2,) * 12)
_TYPES = (
    *("u1", "i1", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "?", ">u2", ">i4", ">f4", ">f8", ">i8", "<i2"),
    *("O", "U3", "S4", "M8[s]", "m8[us]", "c8", "c16", "g", "V6", "i4,f4", "u1,u1"),
)


def _array(rng: np.random.Generator) -> np.ndarray:
    shape, dtype = _SHAPES[rng.integers(len(_SHAPES))], np.dtype(_TYPES[rng.integers(len(_TYPES))])
    if dtype.kind in "OUSMmVcg" or dtype.names:
        return np.zeros(shape, dtype)
    return rng.integers(0, 2 if dtype.kind == "b" else 100, shape).astype(dtype)


def _views(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Another look at memory: with steps, backwards, repeated, transposed, in another order, not aligned, read-only."""
    how = rng.integers(12)
    if how == 0 and x.ndim:
        return x[::-1]
    if how == 1 and x.ndim:
        return x[..., ::2]
    if how == 2:
        return x.T
    if how == 3:
        return np.asfortranarray(x)
    if how == 4:
        return np.broadcast_to(x, (3, *x.shape)) if x.ndim < 30 else x
    if how == 5 and x.ndim and x.shape[0]:
        return np.broadcast_to(x[:1], (4, *x.shape[1:]))
    if how == 6 and x.dtype.kind not in "O" and not x.dtype.names:
        raw = np.zeros(x.nbytes + 1, "u1")
        out = raw[1:].view(x.dtype).reshape(x.shape) if x.nbytes else x
        out[...] = x
        return out
    if how == 7:
        x = x.copy()
        x.setflags(write=False)
        return x
    if how == 8 and x.ndim:
        return np.expand_dims(x, 0)[:, ::-1]
    if how == 9 and x.ndim == 2 and x.dtype.kind in "uif":
        return np.asmatrix(x)
    if how == 10 and x.dtype.kind in "uif":
        return np.ma.masked_array(x, mask=False)
    return x


def _sample(rng: np.random.Generator) -> Any:
    how = rng.integers(24)
    if how == 0:
        return [None, "text", b"bytes", object(), {}, [], [[]], (), 3, 2.5, True, 1j, [1, [2]], [1, "a"], range(3)][
            rng.integers(15)
        ]
    if how == 1:
        return _views(rng, _array(rng)).tolist()
    if how == 2:
        return [2**31, 2**63, 2**64, -(2**31) - 1, 1e300, float("nan"), -(2**70)][rng.integers(7)]
    if how == 3:
        return np.float32(1.5)
    if how == 4:
        return memoryview(b"abcd")
    if how == 5:
        return bytearray(b"abcd")
    return _views(rng, _array(rng))


def _expected(sample: Any) -> np.ndarray:
    x = np.asarray(sample)
    return x.astype(x.dtype.newbyteorder("="))


def attempt(number: int, add: Callable[[str, list[str], str], None], show: bool) -> bool:
    """Says whether the source was refused; `add` takes what is found."""
    rng = np.random.default_rng([12, number])
    n = int(rng.integers(1, 4))
    first = _sample(rng)
    samples = [first if rng.random() < 0.5 else _sample(rng) for _ in range(n)]
    if rng.random() < 0.6:
        samples = [first] * n
    form = rng.integers(5)
    data: Any = samples
    if form == 0:
        data = tuple(samples)
    elif form == 1:  # one array, or what stands for it
        data = first
        try:
            samples = list(_expected(first))
        except (TypeError, ValueError):
            samples = []
    kwargs: dict[str, Any] = {}
    if rng.random() < 0.2:
        kwargs["layout"] = ["HWC", "", "F", "ABCDEFGHI", 3, ["HW"], []][rng.integers(7)]
    if rng.random() < 0.1:
        kwargs["dtype"] = [np.uint8, "u1", 3, "bogus", None, np.dtype("f4"), float][rng.integers(7)]
    if rng.random() < 0.1:
        kwargs["ndim"] = [0, 3, -1, 2**40, "x", 1.5, [3]][rng.integers(7)]
    no_copy, fed, single = (bool(rng.random() < p) for p in (0.5, 0.2, 0.2))
    if show:
        print(f"show source gives {data!r:.2000} {kwargs} no_copy={no_copy} fed={fed} batch={not single}", flush=True)

    @pipeline_def(batch_size=max(n, 8), num_threads=2, prefetch_queue_depth=1, device_id=None)
    def pipe() -> Any:
        if fed:
            x = fn.external_source(name="x", no_copy=no_copy, **kwargs)
        elif single and form > 1:
            source = iter([*samples])
            x = fn.external_source(source=lambda info: next(source), no_copy=no_copy, batch=False, **kwargs)
        else:
            x = fn.external_source(source=lambda: data, no_copy=no_copy, **kwargs)
        return x, fn.copy(x), fn.cast(x, dtype=np.float32)

    p = None
    try:
        p = pipe()
        if fed:
            p.feed_input("x", data)
        out = p.run()
    except (ValueError, TypeError, RuntimeError, StopIteration) as e:
        from operator_checks import accident

        text, where = str(e), accident(e)
        if single and form > 1 and not fed and not text:
            return True  # the source has no more samples
        if "[internal error]" in text or not text or where:
            add(
                "odd source",
                ["external_source"],
                f"{type(e).__name__}: {text.split('encountered:')[-1][:200]} ({where})",
            )
        return True
    except Exception as e:
        add("odd source", ["external_source"], f"{type(e).__name__}: {str(e)[:300]}")
        return True
    finally:
        if p is not None:
            p.close()
    for j, o in enumerate(out[:2]):
        if len(o) != len(samples):
            add("odd source", ["external_source"], f"output {j} has {len(o)} samples of {len(samples)}")
            return False
        for i, s in enumerate(samples):
            want, got = _expected(s), np.asarray(o.at(i))
            if want.shape != got.shape or not np.array_equal(
                want.astype(got.dtype), got, equal_nan=got.dtype.kind == "f"
            ):
                add(
                    "odd source",
                    ["external_source"],
                    f"output {j} of {s!r:.100}: {got!r:.100} instead of {want!r:.100}",
                )
                return False
    return False
