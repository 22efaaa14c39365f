# SPDX-License-Identifier: Apache-2.0
"""One declaration tests an operator: `test = op_test("brightness", reference, ...)`.

Every case (element type x layout x arguments) runs in a real pipeline on a ragged batch with 1x1, odd and empty samples
and is compared with a NumPy reference. Also checked: bytes after the outputs, unchanged input, the second batch like
the first, 1 thread == many, a sample alone == among others, fn == ops, a constant argument == the same value per sample
(per frame), a window pushed down == cropped afterwards, and error messages. test_harness.py has operators that violate
each of these. `make conformance` compares the same cases with the real DALI.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import penstock
from deviations import Either
from emulated_work import check_work
from penstock import fn, ops, pipeline_def
from penstock.core.batch import Batch
from penstock.core.op import REGISTRY, Operator
from penstock.graph import trace
from probes import cut, probes

# Height and width of the samples of a batch: odd, single pixel, empty, wide, and large enough for SIMD and a remainder.
SIZES = ((5, 4), (1, 1), (0, 4), (33, 17), (8, 67))
FRAMES = (2, 1, 3, 1, 2)
ON_REAL_GPU = os.environ.get("PENSTOCK_TEST_GPU") == "1"


@dataclass(frozen=True)
class Column:
    """An argument that differs between samples (or frames)."""

    make: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
    shape: tuple[int, ...] = ()
    per_frame: bool = False
    text: str = "column"

    def __repr__(self) -> str:
        return self.text


def per_sample(lo: float, hi: float, shape: Sequence[int] = (), dtype: Any = "f4", frames: bool = False) -> Column:
    """Uniform values in [lo, hi) (integers: lo..hi-1), one (or one vector of `shape`) per sample, or per frame."""
    kind = np.dtype(dtype).kind

    def make(rng: np.random.Generator, s: tuple[int, ...]) -> np.ndarray:
        return rng.integers(lo, hi, s).astype(dtype) if kind in "iu" else rng.uniform(lo, hi, s).astype(dtype)

    return Column(make, tuple(shape), frames, f"per_{'frame' if frames else 'sample'}({lo},{hi})")


@dataclass
class Case:
    dtype: Any
    layout: str
    kwargs: dict[str, Any]

    @property
    def id(self) -> str:
        arguments = ",".join(f"{k}={getattr(v, 'name', v)}".replace(" ", "") for k, v in self.kwargs.items())
        return f"{np.dtype(self.dtype).name}-{self.layout or 'none'}-{arguments or 'defaults'}"


@dataclass
class OpTest:
    """The declaration of an operator's test; conformance reads it too."""

    name: str
    reference: Callable[..., Any]
    cases: list[Case]
    sizes: Sequence[tuple[int, ...]] = SIZES
    channels: int = 3
    steps: float = 0
    share: float = 0.25  # with steps: the share of a case's integers that may differ
    ulps: float = 4
    atol: float = 0
    make_input: Callable[[np.random.Generator, Case], list[np.ndarray]] | None = None
    extra_inputs: Callable[[np.random.Generator, Case], list[list[np.ndarray]]] | None = None
    dali_steps: float | None = (
        None  # largest difference from DALI, in steps of an integer type (default: steps, at least 0)
    )
    errors: Sequence[tuple[dict[str, Any], type[Exception], str]] = ()
    # Part of a case's id -> reason of a deliberate difference.
    dali_differs: dict[str, str | Either] = field(default_factory=dict)

    def inputs(self, case: Case) -> list[np.ndarray]:
        rng = np.random.default_rng(7)
        if self.make_input is not None:
            return self.make_input(rng, case)
        return [
            random_array(rng, full_shape(case.layout, hw, self.channels, i), case.dtype)
            for i, hw in enumerate(self.sizes)
        ]

    def columns(self, case: Case, samples: list[np.ndarray]) -> dict[str, list[np.ndarray]]:
        """Per-sample values of the arguments that are columns."""
        rng = np.random.default_rng(11)
        columns = {}
        for k, v in case.kwargs.items():
            if isinstance(v, Column):
                if v.per_frame:
                    columns[k] = [v.make(rng, (len(s), *v.shape)) for s in samples]
                else:
                    columns[k] = [v.make(rng, v.shape) for _ in samples]
        return columns

    def data(self, case: Case) -> tuple[list[np.ndarray], list[list[np.ndarray]], dict[str, list[np.ndarray]]]:
        """The samples, the further inputs and the per-sample arguments of a case."""
        samples = self.inputs(case)
        extra = self.extra_inputs(np.random.default_rng(3), case) if self.extra_inputs else []
        return samples, extra, self.columns(case, samples)


def random_array(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype, endpoint=True)
    return rng.random(shape).astype(dtype)


def full_shape(layout: str, hw: tuple[int, ...], channels: int, i: int) -> tuple[int, ...]:
    extents = {"H": hw[0], "W": hw[1], "C": channels, "F": FRAMES[i % len(FRAMES)], "D": 3}
    return tuple(extents[c] for c in layout) if layout else tuple(hw)


def build(
    name: str,
    samples,
    case: Case,
    columns,
    num_threads: int = 2,
    face: str = "fn",
    extra=None,
    before: bool = False,
    behind: bool = False,
    device: str = "cpu",
) -> penstock.Pipeline:
    """A pipeline that applies the operator to the samples. `before` and `behind` add operators that create and read
    windows."""
    whole, cut = probes(REGISTRY[name].by_frame)
    on = {} if device == "cpu" else {"device": device}
    # With one prefetched batch, as with a memory limit, each batch has its own stream, so its work can be counted.
    in_turn = {"prefetch_queue_depth": 1, "device_memory_limit": 1 << 36}
    options = {"device_id": 0, **in_turn} if on else {"device_id": None}

    @pipeline_def(batch_size=len(samples), num_threads=num_threads, seed=1, **options)
    def pipe():
        fed = [fn.external_source(source=lambda i: samples, no_copy=True, layout=case.layout or None)]
        fed += [fn.external_source(source=lambda i, e=e: e) for e in (extra or [])]
        x, *more = (d.gpu() if on and i not in REGISTRY[name].peeks else d for i, d in enumerate(fed))
        kwargs = dict(case.kwargs)
        for k, values in columns.items():
            is_frames = isinstance(values, _Frames) or (isinstance(case.kwargs[k], Column) and case.kwargs[k].per_frame)
            layout = "F" + "N" * (values[0].ndim - 1) if is_frames else None
            kwargs[k] = fn.external_source(source=lambda i, v=values: list(v), layout=layout)
        if before:
            x = trace.call(whole, (x,), {})
        ours = _face(fn, name) if face == "fn" else _face(ops, class_path(name))(**kwargs)
        out = ours(x, *more, **on, **kwargs) if face == "fn" else ours(x, *more)
        out = tuple(out) if isinstance(out, (tuple, list)) else (out,)
        return (trace.call(cut, (out[0],), {}), *out[1:]) if behind else out

    return pipe()


class _Frames(list):
    """Values of an argument: for each sample an array with one row per frame."""


def class_path(name: str) -> str:
    return f"{REGISTRY[name].module}.{REGISTRY[name].__name__}".lstrip(".")


def _face(module: Any, path: str) -> Any:
    for part in path.split("."):
        module = getattr(module, part)
    return module


def run(name: str, samples, case: Case, columns, **kwargs) -> list[list[np.ndarray]]:
    """Copies of the samples, by output."""
    pipe = build(name, samples, case, columns, **kwargs)
    return [[np.array(t.at(i)) for i in range(len(t))] for t in pipe.run()]


def assert_close(got: np.ndarray, want: np.ndarray, steps: float, ulps: float, atol: float, what: str) -> None:
    assert got.dtype == want.dtype, f"{what}: type {got.dtype}, expected {want.dtype}"
    assert got.shape == want.shape, f"{what}: shape {got.shape}, expected {want.shape}"
    if not want.size:
        return
    if want.dtype.kind in "iub":
        bound = steps
    else:
        scale = np.nanmax(np.abs(np.where(np.isfinite(want), want, 0).astype("f8")), initial=1)
        bound = atol + ulps * float(np.finfo(want.dtype).eps) * scale
    np.testing.assert_allclose(got.astype("f8"), want.astype("f8"), rtol=0, atol=bound, err_msg=what)


def op_test(
    name: str,
    reference: Callable[..., Any],
    dtypes: Sequence[Any] = ("u1",),
    layouts: Sequence[str] = ("HWC",),
    args: Sequence[dict[str, Any]] = ({},),
    errors: Sequence[tuple[dict[str, Any], type[Exception], str]] = (),
    cases: Sequence[Case] | None = None,
    **options: Any,
) -> type:
    """A test class for operator `name`.

    reference(x, *extra inputs, **arguments) gives the expected output (or a tuple) for one sample (for sequences and
    per-frame arguments: for one frame, if the operator handles frames). `args` are argument sets; values made by
    `per_sample` differ from sample to sample. `errors` are (arguments, exception, pattern of its text). `steps` bounds
    the difference of integers (`share` how many differ), `ulps` that of floats in units of the largest value, `atol`
    adds to it. Other options: see OpTest.
    """
    declared = OpTest(
        name,
        reference,
        list(cases or (Case(d, lay, dict(a)) for d, lay, a in itertools.product(dtypes, layouts, args))),
        errors=errors,
        **options,
    )
    params = [pytest.param(c, id=c.id) for c in declared.cases]

    class TestOperator:
        operator = name
        declaration = declared

        @pytest.mark.parametrize("case", params)
        def test_reference(self, case: Case, monkeypatch):
            monkeypatch.setattr(Batch, "guard_bytes", 64)
            samples, extra, columns = declared.data(case)
            kept = [s.copy() for s in itertools.chain(samples, *extra)]
            pipe = build(name, samples, case, columns, extra=extra)
            outputs, again = pipe.run(), pipe.run()
            for x, k in zip(itertools.chain(samples, *extra), kept):
                np.testing.assert_array_equal(x, k, err_msg="the operator wrote to its input")
            for j, out in enumerate(outputs):
                # Batch operators and aliases have their own memory.
                if REGISTRY[name].run is Operator.run and not REGISTRY[name].aliases:
                    assert out._batch.guards_intact(), "the operator wrote behind its output"
                differ = total = 0
                for i, x in enumerate(samples):
                    want = _expected(declared, case, x, [e[i] for e in extra], {k: v[i] for k, v in columns.items()}, j)
                    assert_close(
                        out.at(i), want, declared.steps, declared.ulps, declared.atol, f"output {j}, sample {i}"
                    )
                    np.testing.assert_array_equal(
                        again[j].at(i), out.at(i), err_msg="the second batch differs from the first"
                    )
                    differ, total = (
                        differ + np.count_nonzero(out.at(i) != want) * (want.dtype.kind in "iu"),
                        total + want.size,
                    )
                assert differ <= max(declared.share * total, 3), (
                    f"output {j}: {differ} of {total} values are off; allowed is a share of {declared.share}"
                )

        @pytest.mark.parametrize("case", params if ON_REAL_GPU else params[:: max(1, len(params) // 2)])
        def test_gpu(self, case: Case):
            """The same cases on the GPU (`make gpu-test`: all; else a few, on an emulated device)."""
            samples, extra, columns = declared.data(case)
            pipe = build(name, samples, case, columns, extra=extra, device="gpu")
            outputs = pipe.run(-1)  # without waiting
            if not ON_REAL_GPU:
                twice = samples * 2, case, {k: v * 2 for k, v in columns.items()}
                judged = REGISTRY[name].gpu_stage.endswith(":KernelWithStatus")
                check_work(outputs, lambda: build(name, *twice, extra=[e * 2 for e in extra], device="gpu"), judged)
            for j, out in enumerate(t.as_cpu() for t in outputs):
                differ = total = 0
                for i, x in enumerate(samples):
                    want = _expected(declared, case, x, [e[i] for e in extra], {k: v[i] for k, v in columns.items()}, j)
                    got = np.asarray(out.at(i))
                    assert_close(
                        got, want, declared.steps, declared.ulps, declared.atol, f"GPU: output {j}, sample {i}"
                    )
                    differ += np.count_nonzero(got != want) * (want.dtype.kind in "iu")
                    total += want.size
                assert differ <= max(declared.share * total, 3), f"GPU: output {j}: {differ} of {total} values are off"

        @pytest.mark.parametrize("case", params[:: max(1, len(params) // 4)])
        def test_faces_and_threads_agree(self, case: Case):
            samples, extra, columns = declared.data(case)
            first = run(name, samples, case, columns, num_threads=1, extra=extra)
            schema = REGISTRY[name].schema
            constant = {
                k: _column(schema[k], v, len(samples)) for k, v in case.kwargs.items() if _can_be_column(schema[k], v)
            }
            variants = {
                "4 threads": run(name, samples, case, columns, num_threads=4, extra=extra),
                "ops": run(name, samples, case, columns, face="ops", extra=extra),
                "arguments as data": run(name, samples, case, {**columns, **constant}, extra=extra),
            }
            if case.layout.startswith("F") and REGISTRY[name].by_frame:
                per_frame = {
                    k: _Frames(np.stack([v] * len(s)) for v, s in zip(c, samples))
                    for k, c in constant.items()
                    if schema[k].per_frame
                }
                variants["arguments per frame"] = run(name, samples, case, {**columns, **per_frame}, extra=extra)
            for what, other in variants.items():
                for a, b in zip(itertools.chain(*first), itertools.chain(*other)):
                    np.testing.assert_array_equal(a, b, err_msg=f"{what} gives something else")
            for i in range(len(samples)) if not REGISTRY[name].mixes_samples else ():
                alone = run(
                    name,
                    samples[i : i + 1],
                    case,
                    {k: v[i : i + 1] for k, v in columns.items()},
                    extra=[e[i : i + 1] for e in extra],
                )
                for a, b in zip(first, alone):
                    np.testing.assert_array_equal(a[i], b[0], err_msg=f"sample {i} alone gives something else")

        @pytest.mark.parametrize("case", params[:: max(1, len(params) // 12)])
        def test_windows(self, case: Case, monkeypatch):
            if REGISTRY[name].run is not Operator.run:
                pytest.skip("not a part of chains")
            monkeypatch.setattr(Batch, "guard_bytes", 64)
            samples, extra, columns = declared.data(case)
            whole = build(name, samples, case, columns, extra=extra).run()
            layout = whole[0].layout()
            for before, behind in ((True, False), (False, True), (True, True)):
                got = build(name, samples, case, columns, extra=extra, before=before, behind=behind).run()
                what = " and ".join(["a windowed producer"] * before + ["a windowed consumer"] * behind)
                for j, (out, want) in enumerate(zip(got, whole)):
                    for i in range(len(samples)):
                        expected = cut(want.at(i), layout, REGISTRY[name].by_frame) if behind and j == 0 else want.at(i)
                        np.testing.assert_array_equal(
                            out.at(i), expected, err_msg=f"output {j}, sample {i} is another beside {what}"
                        )

        @pytest.mark.parametrize("kwargs, exception, text", [pytest.param(*e, id=str(i)) for i, e in enumerate(errors)])
        def test_errors(self, kwargs, exception, text):
            case = Case(declared.cases[0].dtype, declared.cases[0].layout, {**declared.cases[0].kwargs, **kwargs})
            samples, extra, columns = declared.data(case)
            with pytest.raises(exception, match=text):
                run(name, samples, case, columns, extra=extra)

    if not errors:
        del TestOperator.test_errors
    if "gpu" not in REGISTRY[name].devices or REGISTRY[name].inputs[0] == 0:
        del TestOperator.test_gpu
    return TestOperator


def _column(arg: Any, value: Any, n: int) -> list[np.ndarray]:
    return [np.asarray(value, arg.column_type)] * n


def _can_be_column(arg: Any, value: Any) -> bool:
    return arg.tensor and value is not None and not isinstance(value, (Column, str))


def frames_of(
    name: str, case: Case, x: np.ndarray, columns: dict[str, np.ndarray]
) -> list[tuple[np.ndarray, dict[str, Any]]]:
    """The calls of a reference: the frames of a sequence, if the operator handles frames, or the sample, each with its
    arguments."""
    kwargs = {**case.kwargs, **columns}
    if not (case.layout.startswith("F") and REGISTRY[name].by_frame):
        return [(x, kwargs)]
    varied = [k for k, v in case.kwargs.items() if isinstance(v, Column) and v.per_frame]
    return [(frame, {**kwargs, **{k: kwargs[k][f] for k in varied}}) for f, frame in enumerate(x)]


def _expected(
    test: OpTest, case: Case, x: np.ndarray, extra: list, columns: dict[str, np.ndarray], j: int
) -> np.ndarray:
    wants = [test.reference(part, *extra, **kwargs) for part, kwargs in frames_of(test.name, case, x, columns)]
    wants = [w[j] if isinstance(w, tuple) else w for w in wants]
    return np.stack(wants) if case.layout.startswith("F") and REGISTRY[test.name].by_frame else wants[0]


def saturate(x: np.ndarray, dtype: Any) -> np.ndarray:
    """Rounds halves away from zero and clamps to the range of an integer type; NaN becomes 0."""
    dtype = np.dtype(dtype)
    x = np.asarray(x, "f8")
    if dtype.kind == "f":
        return x.astype(dtype)
    if dtype.kind == "b":
        return x != 0
    info = np.iinfo(dtype)
    whole = np.trunc(np.nan_to_num(x, nan=0.0))
    rest = np.nan_to_num(x, nan=0.0) - whole
    whole = whole + (rest >= 0.5) - (rest <= -0.5)
    return np.clip(whole, info.min, info.max).astype(dtype)
