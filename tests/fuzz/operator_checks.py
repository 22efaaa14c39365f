# SPDX-License-Identifier: Apache-2.0
"""Runs programs of operators in several ways that have to agree, and judges how they ended: for fuzz_operators.py."""

from __future__ import annotations

import dis
import re
import sys
from types import TracebackType
from typing import Any, NamedTuple

import numpy as np
from operator_programs import Call, Program, Value, bad

import penstock
from penstock import fn, pipeline_def
from penstock.core.batch import Batch
from penstock.core.errors import SampleErrors
from penstock.core.op import REGISTRY
from penstock.exec.context import explain_failure
from penstock.graph import trace

_PACKAGE = penstock.__file__.rpartition("/")[0]
# They hand on what others raised.
_HANDING_ON = ("/graph/trace.py", "/graph/subscript.py", "/registry/functions.py", "/core/op.py")
_BATCHES = ("one_hot",)  # it takes a batch for scalars if every sample has one element
_GUARD_BYTES = 64
_ITERATIONS = 4
_MOST_OFF = 0.02  # of a sample, such as pixels next to a border that the other device takes for the next one


class Finding(NamedTuple):
    kind: str
    operator: str
    text: str

    @property
    def key(self) -> tuple[str, str, str]:
        """Findings of one key are taken for the same."""
        place = re.search(r" at (\S+:\d+):", self.text)
        if place and "/enum.py" not in place[1]:
            return self.kind, "", place[1]
        return self.kind, self.operator, re.sub(r"[-+]?\d[\d.e+-]*|'[^']*'|nan|inf", "#", self.text)[:160]


class BeyondEnd(Exception):
    """Bytes behind an output have changed."""


class Outcome(NamedTuple):
    """Per iteration the outputs, or the error that ended it."""

    batches: list[list[Value]]
    error: Exception | None = None
    rows: np.ndarray | None = None


_accidents: list[str] = []  # of the operator's own code, since the last look


def accident(error: BaseException | None) -> str:
    """Where an exception came up that no `raise` of the package made: "" if it was meant."""
    while error is not None and error.__context__ is not None and _innermost(error)[0].endswith(_HANDING_ON):
        error = error.__context__
    if error is None or isinstance(error, (SampleErrors, MemoryError)):
        return ""
    file, line, raised = _innermost(error)
    if (raised and file.startswith(_PACKAGE)) or not file:
        return ""
    return f"{type(error).__name__} at {file.rpartition('penstock/')[2]}:{line}: {str(error)[:200]}"


def _innermost(error: BaseException) -> tuple[str, int, bool]:
    """File and line where it came up, and whether by `raise`; that of the package where NumPy is called."""
    frame: TracebackType | None = error.__traceback__
    if frame is None:
        return "", 0, True
    while frame.tb_next is not None:
        frame = frame.tb_next
    code = frame.tb_frame.f_code
    name = dis.opname[code.co_code[frame.tb_lasti]]
    return code.co_filename, frame.tb_lineno, name in ("RAISE_VARARGS", "RERAISE")


def _noted(ctx: Any, node: Any, error: Exception) -> Exception:
    where = accident(error)
    if where:
        _accidents.append(where)
    return explain_failure(ctx, node, error)


def watch() -> None:
    """From now on exceptions of operators are judged where they come up; what is raised later has forgotten it."""
    for name, module in list(sys.modules.items()):
        if name.startswith("penstock.exec.") and getattr(module, "explain_failure", None) is explain_failure:
            if name != "penstock.exec.context":
                module.explain_failure = _noted  # type: ignore[attr-defined]


def run(
    program: Program,
    calls: list[Call],
    wanted: list[int] | None,
    threads: int = 2,
    on_error: str = "raise",
    device: str = "cpu",
) -> Outcome:
    """The calls in one pipeline; values that none of them makes are fed. `wanted` are numbers of values, None for all
    outputs of the last call. The samples come in reverse order in the third iteration, without the last in the fourth.
    """
    made = {c.first + j for c in calls for j in range(c.n_outputs)}

    @pipeline_def(
        batch_size=program.n,
        num_threads=threads,
        prefetch_queue_depth=1,
        seed=1,
        device_id=0 if device == "gpu" else None,
        on_error=on_error,
    )
    def pipe() -> Any:
        nodes: dict[int, Any] = {}

        def node(i: int) -> Any:
            if i not in nodes:
                v = program.values[i]
                nodes[i] = fn.external_source(source=_Feed(v.samples), no_copy=True, layout=v.layout or None)
            return nodes[i]

        outputs: list[Any] = []
        for c in calls:
            inputs = tuple(node(i) for i in c.inputs)
            kwargs = {**c.constants, **{k: node(i) for k, i in c.data.items()}}
            if device in REGISTRY[c.operator].devices and device == "gpu":
                inputs, kwargs["device"] = tuple(x.gpu() for x in inputs[:1]) + inputs[1:], device
            else:
                inputs = tuple(x.cpu() for x in inputs)
            if c.operator in ("subscript", "arithmetic"):
                out = trace.call(REGISTRY[c.operator], inputs, kwargs)
            else:
                out = bad.face(c.operator)(*inputs, **kwargs)
            outputs = list(out) if isinstance(out, (tuple, list)) else [out]
            if c.first >= 0:
                nodes.update({c.first + j: o for j, o in enumerate(outputs)})
        if wanted is None:
            return tuple(outputs)
        assert set(wanted) <= made
        return tuple(nodes[i] for i in wanted)

    # Others bring memory of their own.
    native = all(REGISTRY[c.operator].is_native() and not REGISTRY[c.operator].aliases for c in calls)
    guarded = Batch.guard_bytes > 0 and native and device == "cpu"
    batches: list[list[Value]] = []
    p = rows = None
    try:
        p = pipe()
        for i in range(_ITERATIONS):
            out = p.run()
            for j, o in enumerate(out if guarded else ()):
                if not o._batch.guards_intact():
                    raise BeyondEnd(f"output {j} of iteration {i} was written beyond its end")
            batches.append([_value(o.as_cpu()) for o in out])
            rows = p.sample_indices() if i == 0 else rows
    except Exception as e:
        return Outcome(batches, e, rows)
    finally:
        if p is not None:
            p.close()
    return Outcome(batches, None, rows)


class _Feed:
    def __init__(self, samples: list[np.ndarray]):
        self.samples = samples

    def __call__(self, iteration: int) -> list[np.ndarray]:
        if iteration == 2:
            return self.samples[::-1]
        return self.samples[: max(len(self.samples) - 1, 1)] if iteration == 3 else list(self.samples)


def _value(out: Any) -> Value:
    return Value([np.array(out.at(i)) for i in range(len(out))], out.layout())


def difference(a: list[Value], b: list[Value]) -> str:
    """How the outputs of two runs differ; "" if they don't."""
    for j, (x, y) in enumerate(zip(a, b, strict=True)):
        if len(x.samples) != len(y.samples):
            return f"output {j} has {len(x.samples)} and {len(y.samples)} samples"
        if x.layout != y.layout:
            return f"output {j} has the layouts '{x.layout}' and '{y.layout}'"
        for i, (s, t) in enumerate(zip(x.samples, y.samples)):
            if s.dtype != t.dtype or s.shape != t.shape:
                return f"output {j}, sample {i} is {s.dtype} {s.shape} and {t.dtype} {t.shape}"
            if s.tobytes() != t.tobytes() and not np.array_equal(s, t, equal_nan=s.dtype.kind == "f"):
                where = np.argwhere(~((s == t) | ((s != s) & (t != t))))
                at = tuple(where[0])
                return f"output {j}, sample {i} has {len(where)} other values: {s[at]} and {t[at]} at {at} of {s.shape}"
    return ""


def distance(a: list[Value], b: list[Value]) -> str:
    """How two devices differ by more than their rounding; "" if they don't."""
    for j, (x, y) in enumerate(zip(a, b, strict=True)):
        if x.layout != y.layout or [(s.shape, s.dtype) for s in x.samples] != [(s.shape, s.dtype) for s in y.samples]:
            return f"output {j} is another: {[s.shape for s in x.samples]} and {[s.shape for s in y.samples]}"
        for i, (s, t) in enumerate(zip(x.samples, y.samples)):
            if not s.size or s.tobytes() == t.tobytes():
                continue
            s, t = s.astype("f8"), t.astype("f8")
            finite = np.isfinite(s) & np.isfinite(t)
            scale = np.abs(s[finite]).max(initial=1)
            bound = 1.01 if x.samples[i].dtype.kind in "iub" else 0
            off = np.where(finite, np.abs(s - t) > bound + 1e-3 * scale, ~((s == t) | (np.isnan(s) & np.isnan(t))))
            if off.mean() > _MOST_OFF:
                at = tuple(np.argwhere(off)[0])
                which = f"{off.sum()} of {off.size} differ"
                return f"output {j}, sample {i}: {which}: {s[at]} and {t[at]} at {at} of {s.shape}"
    return ""


class Judge:
    """Looks at one program after the other; `findings` are those of the last."""

    def __init__(self, show: Any = None, gpu: bool = False) -> None:
        self.gpu = gpu  # programs are tried there, and nothing else
        self.findings: list[Finding] = []
        self.show = show  # called with a program before each call of it is tried
        self.failed = False  # the last program ended with an error

    def run_alone(self, program: Program, call: Call) -> list[Value] | None:
        if self.show is not None:
            self.show(Program(program.n, program.values, [*program.calls, call]))
        done = self.run(program, [call], None)
        return done.batches[0] if done.batches else None

    def run(self, program: Program, calls: list[Call], wanted: list[int] | None, **how: Any) -> Outcome:
        _accidents.clear()
        kept = [[x.copy() for x in v.samples] for v in program.values]
        Batch.guard_bytes = 0 if how.get("on_error") or self.gpu else _GUARD_BYTES
        done = run(program, calls, wanted, **how)
        names = [c.operator for c in calls]
        for v, before in zip(program.values, kept):
            if any(x.tobytes() != y.tobytes() for x, y in zip(v.samples, before)):
                self.add("wrote to its input", names, "")
        if done.error is not None:
            self.judge(done.error, names)
        return done

    def add(self, kind: str, names: list[str], text: str) -> None:
        self.findings.append(Finding(kind, "+".join(names), text))

    def judge(self, e: Exception, names: list[str]) -> None:
        text = str(e)
        if isinstance(e, MemoryError) and "Unable to allocate" in text:  # for the copies that are compared here
            return
        cause = " ".join(text.split("encountered:\n\n")[-1].split())
        blamed = [n for n in names if f"fn.{n}" in text.replace("_auto_aug.", "")] or names
        where = accident(e) if not _accidents else _accidents[0]
        if "[internal error]" in text:
            self.add("internal error", blamed[:1], f"{cause[:300]} ({where})")
        elif not isinstance(e, (ValueError, TypeError, RuntimeError, MemoryError)) or isinstance(e, UnicodeError):
            self.add("exception", blamed[:1], f"{type(e).__name__}: {cause[:300]}")
        elif where:
            self.add("accident", blamed[:1], where)
        elif not re.search(r"\bfn\.[a-z]", text) and "external_source" not in text:
            self.add("nameless", names[-1:], f"{type(e).__name__}: {cause[:300]}")
        elif not cause:
            self.add("no text", names[-1:], type(e).__name__)

    def whole(self, program: Program) -> None:
        """A drawn program, whose calls were run alone, as one pipeline."""
        calls = program.calls
        names = [c.operator for c in calls]
        made = [c.first + j for c in calls for j in range(c.n_outputs)]
        self.failed = calls[-1].first < 0
        if self.failed:
            last = None
        elif program.n % 2:  # narrowed all the way
            last = [calls[-1].first + j for j in range(calls[-1].n_outputs)]
        else:
            last = made
        if last == []:
            return
        if self.gpu:
            self.on_gpu(program, calls, last, names)
            return
        base = self.run(program, calls, last, threads=3)
        if base.error is not None and base.batches:
            if not self.depends_on_place(names):
                self.add("second batch", names, f"fails: {base.error}"[-300:])
            return
        if (base.error is not None) != self.failed:
            what = "fails where its operators alone don't" if base.error else "runs where an operator alone fails"
            self.add(what, names, str(base.error or "").split("encountered:")[-1].strip()[:300])
            return
        one = self.run(program, calls, last, threads=1)
        if (one.error is None) != (base.error is None):
            self.add("threads", names, f"{one.error} with one, {base.error} with three")
        if base.error is None and one.error is None:
            assert last is not None
            self.compare("threads", names, one.batches[0], base.batches[0])
            unseeded = not any("source_info" in c.constants.values() for c in calls)
            if unseeded:
                self.compare("cut apart", names, base.batches[0], [program.values[i] for i in last])
            if not self.depends_on_place(names) and unseeded:
                again = [Value(v.samples[::-1], v.layout) for v in base.batches[2]]
                self.compare("second batch", names, base.batches[1], base.batches[0])
                self.compare("reversed batch", names, again, base.batches[0])
                fed = any(i not in made for c in calls for i in (*c.inputs, *c.data.values()))
                fewer = [Value(v.samples[: max(program.n - 1, 1)], v.layout) for v in base.batches[0]]
                self.compare("smaller batch", names, base.batches[3], fewer if fed else base.batches[0])
        skip = self.run(program, calls, last, threads=2, on_error="skip")
        if base.error is None:
            if skip.error is not None:
                self.add("skip", names, f"fails: {skip.error}"[:300])
            else:
                self.compare("skip", names, skip.batches[0], base.batches[0])
        elif skip.error is None and skip.rows is not None and len(skip.rows) and not self.depends_on_place(names):
            rest = Program(len(skip.rows), [Value([v.samples[i] for i in skip.rows], v.layout) for v in program.values])
            alone = self.run(rest, calls, last)
            if alone.error is not None:
                self.add("skip", names, f"what it leaves fails alone: {alone.error}"[:400])
            else:
                self.compare("skip", names, skip.batches[0], alone.batches[0])

    def on_gpu(self, program: Program, calls: list[Call], last: list[int] | None, names: list[str]) -> None:
        there = self.run(program, calls, last, device="gpu")
        failed = there.error is not None and not there.batches
        if failed != self.failed:
            what = "fails on the GPU only" if failed else "fails on the CPU only"
            self.add(what, names, str(there.error or "").split("encountered:")[-1].strip()[:300])
        elif last is not None and there.batches:
            found = distance(there.batches[0], [program.values[i] for i in last])
            if found:
                self.add("GPU", names, found)
            if len(there.batches) == _ITERATIONS and not self.depends_on_place(names):
                again = [Value(v.samples[::-1], v.layout) for v in there.batches[2]]
                self.compare("second batch on the GPU", names, there.batches[1], there.batches[0])
                self.compare("reversed batch on the GPU", names, again, there.batches[0])

    @staticmethod
    def depends_on_place(names: list[str]) -> bool:
        """Whether what comes of a sample depends on where in the epoch it is."""
        return any(n in _BATCHES or "seed" in REGISTRY[n].schema or REGISTRY[n].mixes_samples for n in names)

    def compare(self, kind: str, names: list[str], a: list[Value], b: list[Value]) -> None:
        found = difference(a, b)
        if found:
            self.add(kind, names, found)
