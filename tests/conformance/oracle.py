# SPDX-License-Identifier: Apache-2.0
"""Runs one case of an operator in the real DALI and in penstock, and measures how far apart they are."""

from __future__ import annotations

import enum
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import harness
from deviations import Either
from harness import Case, Column
from penstock.core.op import REGISTRY

dali_fn: Any
dali_types: Any
dali_ops: Any
pipeline_def: Any


def load_dali() -> bool:
    """Imports DALI. Returns whether it is installed."""
    global dali_fn, dali_ops, dali_types, pipeline_def
    try:
        import nvidia.dali.fn as dali_fn
        import nvidia.dali.ops as dali_ops
        import nvidia.dali.types as dali_types
        from nvidia.dali import pipeline_def
    except ImportError:
        return False
    return True


def store_no_tracebacks() -> None:
    """DALI stores a traceback for each operator, which takes longer than to make the operator. Its errors name the
    operator in any case."""
    from nvidia.dali._utils import dali_trace

    dali_trace.set_tracing(enabled=False)


@dataclass
class Result:
    """The outputs of a run, a list of samples per output, or the exception."""

    outputs: list[list[np.ndarray]] = field(default_factory=list)
    layouts: list[str] = field(default_factory=list)
    error: str = ""


def has_operator(name: str) -> bool:
    """Whether DALI has an operator of this name."""
    found = dali_fn
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def has_gpu_forms(name: str) -> bool:
    """Whether both libraries have the operator on the GPU."""
    schema = harness.class_path(name).replace(".", "__").lower()
    return "gpu" in REGISTRY[name].devices and schema in {n.lower() for n in dali_ops.gpu_ops()}


def run_penstock(name: str, case: Case, samples: list, columns: dict, extra: list, device: str = "cpu") -> Result:
    try:
        return _collect(harness.build(name, samples, case, columns, extra=extra, device=device).run())
    except Exception as e:
        return Result(error=_cause(e))


def run_dali(name: str, case: Case, samples: list, columns: dict, extra: list, device: str = "cpu") -> Result:
    def on_device(x):
        return x.gpu() if device == "gpu" else x

    @pipeline_def(
        batch_size=len(samples),
        num_threads=1,
        device_id=0 if device == "gpu" else None,
        seed=1,
        prefetch_queue_depth=1,
        exec_pipelined=False,
        exec_async=False,
    )
    def pipe():
        x = on_device(_feed(samples, case.layout or None))
        more = [on_device(_feed(e, None)) for e in extra]
        kwargs = {k: dali_value(v) for k, v in case.kwargs.items()}
        for k, values in columns.items():
            frames = isinstance(case.kwargs[k], Column) and case.kwargs[k].per_frame
            kwargs[k] = _feed(values, "F" + "N" * (values[0].ndim - 1) if frames else None)
        out = harness._face(dali_fn, name)(x, *more, **kwargs)
        return tuple(out) if isinstance(out, (tuple, list)) else (out,)

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _collect(pipe().run())
    except Exception as e:
        return Result(error=_cause(e))


def _feed(samples: list[np.ndarray], layout: str | None) -> Any:
    return dali_fn.external_source(source=lambda i: samples, layout=layout)


def dali_value(v: Any) -> Any:
    """Converts penstock's enumerations in an argument to DALI's."""
    if isinstance(v, enum.IntEnum):
        return getattr(dali_types, type(v).__name__)(int(v))
    if isinstance(v, (list, tuple)):
        return type(v)(dali_value(i) for i in v)
    return v


def _collect(outputs: Iterable[Any]) -> Result:
    outputs = [t.as_cpu() for t in outputs]
    return Result([[np.array(t.at(i)) for i in range(len(t))] for t in outputs], [t.layout() for t in outputs])


def _cause(e: Exception) -> str:
    """The part of an error message with the cause."""
    text = str(e).split("encountered:")[-1]
    lines = [
        line.strip()
        for line in text.splitlines()
        if line.strip() and not line.startswith(("Stacktrace", "[frame", "Current pipeline"))
    ]
    return f"{type(e).__name__}: {' '.join(lines)[:300]}"


@dataclass
class Bound:
    """Tolerance of results: for integers in steps, for floats in units of the last place of the largest value, plus
    `atol`."""

    steps: float = 0
    ulps: float = 4
    atol: float = 0


class Problem(str):
    """The difference found by a case.

    `kind` is "refuses" (penstock raises only), "accepts" (DALI raises only), "form" (number, layout, type or shape of
    outputs) or "values"; `equal` is the share of equal values.
    """

    kind: str
    equal: float | None

    def __new__(cls, text: str, kind: str = "form", equal: float | None = None) -> Problem:
        self = super().__new__(cls, text)
        self.kind, self.equal = kind, equal
        return self


NONE = Problem("")


@dataclass
class Tally:
    """Results of the cases of one operator."""

    cases: int = 0
    both_raise: int = 0
    steps: float = 0  # largest difference of integers
    relative: float = 0  # largest difference of floats and 32-bit integers, in units of the largest value
    equal: int = 0  # share of equal integers
    values: int = 0
    deliberate: dict[str, list[float | None]] = field(default_factory=dict)  # reason -> equal values, per case
    failures: list[str] = field(default_factory=list)
    notes: dict[str, int] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.both_raise += other.both_raise
        self.steps, self.relative = max(self.steps, other.steps), max(self.relative, other.relative)
        self.equal += other.equal
        self.values += other.values
        for reason, shares in other.deliberate.items():
            self.deliberate.setdefault(reason, []).extend(shares)
        self.failures += other.failures
        for text, n in other.notes.items():
            self.notes[text] = self.notes.get(text, 0) + n

    def excuse(
        self,
        problem: Problem,
        differs: Mapping[str, str | Either],
        case_id: str,
        holds: Callable[[Either], bool] = lambda deviation: False,
    ) -> bool:
        """Counts a deliberate difference. `differs`: part of the case's id -> reason. Cases that only penstock rejects,
        and differences in form, require the prefix "refuses:" or "form:"; "accepts:" allows only cases that only DALI
        rejects. `holds`: whether a bounded deviation is within its bounds."""
        prefix = {"form": "form:", "refuses": "refuses:"}.get(problem.kind, "")
        prefixes = "^(form|refuses|accepts):" if problem.kind == "accepts" else "^(form|refuses):"
        reasons = (r for p, r in differs.items() if p.startswith(prefix) and re.sub(prefixes, "", p) in case_id)
        reason = next(reasons, "")
        if isinstance(reason, Either):
            reason = reason.reason if problem.kind == "values" and holds(reason) else ""
        if not reason:
            return False
        self.deliberate.setdefault(reason, []).append(problem.equal)
        return True

    def note(self, text: str) -> None:
        self.notes[text] = self.notes.get(text, 0) + 1


def compare(theirs: Result, ours: Result, bound: Bound, tally: Tally) -> Problem:
    """Adds a case to the tally. Returns the problem, or NONE."""
    if theirs.error and ours.error:
        tally.both_raise += 1
        return NONE
    if theirs.error:
        return Problem(f"DALI raises ({theirs.error}), penstock does not", "accepts")
    if ours.error:
        return Problem(f"penstock raises ({ours.error}), DALI does not", "refuses")
    if len(theirs.outputs) != len(ours.outputs):
        return Problem(f"{len(ours.outputs)} outputs, DALI has {len(theirs.outputs)}")
    if theirs.layouts != ours.layouts:
        return Problem(f"layouts {ours.layouts}, DALI has {theirs.layouts}")
    wrong = NONE
    for j, (want_list, got_list) in enumerate(zip(theirs.outputs, ours.outputs)):
        if len(want_list) != len(got_list):
            return Problem(f"{len(got_list)} samples, DALI has {len(want_list)}")
        for i, (want, got) in enumerate(zip(want_list, got_list)):
            wrong = wrong or _compare_arrays(want, got, bound, tally, f"output {j}, sample {i}")
    return wrong


def is_among(
    deviation: Either, results: Iterable[Result], name: str, case: Case, samples: list, columns: dict, bound: Bound
) -> bool:
    """Whether each element of output 0 is within `deviation`, and the other outputs are equal."""
    first, *others = results
    rest = [Result(r.outputs[1:], r.layouts[1:]) for r in (first, *others)]
    if any(compare(rest[0], r, bound, Tally()) for r in rest[1:]):
        return False
    layout = case.layout.removeprefix("F") if REGISTRY[name].by_frame else case.layout
    for i, x in enumerate(samples):
        parts = harness.frames_of(name, case, x, {k: v[i] for k, v in columns.items()})
        for f, (part, kwargs) in enumerate(parts):
            allowed = np.stack(deviation.outputs(part, layout, **kwargs))
            for r in (first, *others):
                got = r.outputs[0][i] if part is x else r.outputs[0][i][f]
                if not _among(allowed, got, deviation.between, bound):
                    return False
    return True


def _among(allowed: np.ndarray, got: np.ndarray, between: bool, bound: Bound) -> bool:
    """Whether each element is close to an allowed value, or to their range, within the tolerance of `compare`."""
    if not got.size:
        return True
    limits = [_limit(a, bound)[0] for a in allowed]
    off = np.abs(allowed.astype("f8") - got.astype("f8")).T - limits
    near = (off <= 0).any(axis=-1).T
    if between:
        near |= (allowed.min(axis=0) <= got) & (got <= allowed.max(axis=0))
    return bool(near.all())


def _limit(want: np.ndarray, bound: Bound) -> tuple[float, str, float]:
    """The tolerance, its unit, and the largest value."""
    if want.dtype.kind in "iub":
        scale = float(np.max(np.abs(want.astype("f8"))))
        if bound.steps and want.dtype.itemsize > 1:  # steps of float32 may be larger than those of the type
            unit = "absolute" if want.dtype.itemsize > 2 else "steps"
            return bound.steps + bound.ulps * 2.0**-23 * scale, unit, scale
        return bound.steps, "steps", scale
    scale = float(np.max(np.abs(np.where(np.isfinite(want), want, 0).astype("f8")), initial=1))
    return bound.atol + bound.ulps * float(np.finfo(want.dtype).eps) * scale, "absolute", scale


def _compare_arrays(want: np.ndarray, got: np.ndarray, bound: Bound, tally: Tally, what: str) -> Problem:
    if want.dtype != got.dtype:
        return Problem(f"{what}: type {got.dtype}, DALI has {want.dtype}")
    if want.shape != got.shape:
        return Problem(f"{what}: shape {got.shape}, DALI has {want.shape}")
    if not want.size:
        return NONE
    same = want == got
    if want.dtype.kind == "f":
        same |= np.isnan(want) & np.isnan(got)
    equal = int(np.count_nonzero(same))
    if want.dtype.kind in "iub":
        tally.equal, tally.values = tally.equal + equal, tally.values + want.size
    if equal == want.size:
        return NONE
    with np.errstate(invalid="ignore"):
        difference = np.where(same, 0, np.abs(want.astype("f8") - got.astype("f8")))
    off = float(np.nan_to_num(np.max(difference), nan=np.inf))
    limit, unit, scale = _limit(want, bound)
    if off > limit:
        at = np.unravel_index(int(np.argmax(~same)), want.shape)
        where = f"at {tuple(map(int, at))} {got[at]}, DALI has {want[at]}"
        text = f"{what}: off by {off:.4g} {unit} ({want.size - equal} of {want.size} values; {where})"
        return Problem(text, "values", equal / want.size)
    if unit == "steps":
        tally.steps = max(tally.steps, off)
    else:
        tally.relative = max(tally.relative, off / scale)
    return NONE
