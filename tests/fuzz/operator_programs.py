# SPDX-License-Identifier: Apache-2.0
"""Random programs of one to four operators, for fuzz_operators.py: a function of their number.

A program starts from a case that a test of the operator declares, or from the schema, and is then spoiled in places:
other inputs, other arguments, arguments as data. Each operator is run alone as soon as it is drawn, so that the next
one is given what it may well accept."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/operators")]

import bad_input_cases as bad  # noqa: E402

from harness import Case, Column, OpTest, random_array  # noqa: E402
from modules import operator_tests  # noqa: E402
from penstock import types  # noqa: E402
from penstock.core.op import REGISTRY, Arg, Layout, Operator  # noqa: E402
from penstock.core.source import Source  # noqa: E402

TYPES = ("u1", "u1", "u1", "f4", "f4", "i1", "u2", "i2", "i4", "u4", "i8", "u8", "f2", "f8", "?")
LAYOUTS = ("HWC", "HWC", "HWC", "CHW", "HW", "FHWC", "FHWC", "FCHW", "DHWC", "CDHW", "FDHWC", "", "WHC", "ABC", "F")
EXTENTS = (1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 40, 64)
_MOST_ELEMENTS = 200_000
_FLOATS = (*bad.FLOATS, 0.5, 0.25, 1.0, 2.0, 2.5, 10.0, 100.0, 255.0, 1e10, 2.0**31, 2.0**63, 1e-7, -0.0)
_INTS = (0, 1, 2, 3, 4, 5, 8, 16, 100, 255, -1, -2, 65536, 2**31 - 1, -(2**31), 2**31, 2**32, 2**63 - 1, 2**63, 2**64)
_TEXTS = (*bad.TEXTS, "H", "HW", "C", "F", "CHW", "DHW", "FHWC", "HH", "D", "W", "pad", "error", "\0", "é")
_STRANGE = ("x", b"x", [], {}, object, 1.5, True, 1j, np.float64("nan"), np.uint8(200), np.zeros((2, 2)), [[1, 2], [3]])


@dataclass
class Value:
    """Samples that a program starts from, or that an operator gave."""

    samples: list[np.ndarray]
    layout: str = ""


@dataclass
class Call:
    """`inputs` and `data` are numbers of values; the outputs are the values from `first` on."""

    operator: str
    inputs: list[int]
    constants: dict[str, Any]
    data: dict[str, int]
    first: int = -1
    n_outputs: int = 0


@dataclass
class Program:
    n: int
    values: list[Value] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)

    def add(self, samples: list[np.ndarray], layout: str = "") -> int:
        self.values.append(Value(samples, layout))
        return len(self.values) - 1

    def __str__(self) -> str:
        made = {c.first + j for c in self.calls for j in range(c.n_outputs)}
        lines = []
        for i, v in enumerate(self.values):
            if i not in made and any(i in c.inputs or i in c.data.values() for c in self.calls):
                shapes = [x.shape for x in v.samples]
                small = [x.tolist() for x in v.samples] if 0 < sum(x.size for x in v.samples) <= 24 else ""
                lines.append(f"  v{i} = {v.samples[0].dtype} '{v.layout}' {shapes} {small}")
        for c in self.calls:
            outs = ", ".join(f"v{c.first + j}" for j in range(c.n_outputs)) or "..."
            given = [f"v{i}" for i in c.inputs] + [f"{k}={v!r}" for k, v in c.constants.items()]
            given += [f"{k}=v{i}" for k, i in c.data.items()]
            lines.append(f"  {outs} = fn.{c.operator}({', '.join(given)})")
        return "\n".join(lines)


class Generator:
    """Draws programs. `run_alone(program, call)` gives the values that a call makes, or None if it fails."""

    def __init__(self, run_alone: Any, only: str = ""):
        self.run_alone = run_alone
        names = [
            n
            for n, c in sorted(REGISTRY.items())
            if not n.startswith(bad.LEFT_OUT) and not issubclass(c, Source) and "cpu" in c.devices
        ]
        self.declared = operator_tests()
        self.names = [n for n in names if REGISTRY[n].__module__.startswith("penstock.")]
        self.chosen = [n for n in self.names if not only or n in only.split(",")]
        followers = [n for n in self.names if REGISTRY[n].inputs[0] >= 1]
        with_windows = [n for n in followers if REGISTRY[n].windowed or REGISTRY[n].region is not Operator.region]
        self.followers = followers + 3 * with_windows

    def draw(self, number: int) -> Program:
        self.rng = np.random.default_rng([11, number])
        self.program = Program(int(self.rng.integers(1, 5)))
        last: list[int] = []
        for k in range(int(self.one_of((1, 2, 2, 3, 3, 4)))):
            for _ in range(4):
                call = self.call(self.one_of(self.followers if last else self.chosen), last)
                outputs = self.run_alone(self.program, call)
                if outputs is not None or self.maybe(0.2):
                    break
            self.program.calls.append(call)
            if outputs is None:
                break
            call.first, call.n_outputs = len(self.program.values), len(outputs)
            self.program.values += outputs
            last = [i for i in range(call.first, call.first + call.n_outputs)]
            if k and self.maybe(0.3):  # a fork: the next one reads an earlier value
                last = [int(self.rng.integers(0, len(self.program.values)))]
            if not last:
                break
        return self.program

    def one_of(self, values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def maybe(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def call(self, name: str, last: list[int]) -> Call:
        cls, program = REGISTRY[name], self.program
        tests = [t for t in self.declared.get(name, ()) if t.cases]
        constants: dict[str, Any] = {}
        data: dict[str, int] = {}
        if tests and self.maybe(0.9):
            inputs = self.declared_call(self.one_of(tests), last, constants, data)
        else:
            inputs = self.schema_call(name, last, constants)
        if self.maybe(0.1) and inputs:
            inputs[int(self.rng.integers(len(inputs)))] = self.new_input()
        if self.maybe(0.05) and len(inputs) < cls.inputs[1]:
            inputs.append(int(self.rng.integers(len(program.values))) if program.values else self.new_input())
        self.spoil(cls, constants, data)
        if "seed" in cls.schema:  # or it would follow from the place in the pipeline
            constants["seed"] = 1234
        return Call(name, inputs, constants, data)

    def declared_call(
        self, test: OpTest, last: list[int], constants: dict[str, Any], data: dict[str, int]
    ) -> list[int]:
        program, n = self.program, self.program.n
        fits = test.cases
        if last:
            v = program.values[self.one_of(last)]
            alike = [c for c in fits if c.layout == v.layout and np.dtype(c.dtype) == v.samples[0].dtype]
            alike = alike or [c for c in fits if c.layout == v.layout] or fits
            fits = alike if self.maybe(0.9) else fits
        case = self.one_of(fits)
        samples, extra, columns = test.data(case)
        rows = self.rng.integers(0, len(samples), n)
        if last:
            first = self.one_of(last)
        elif self.maybe(0.5) or test.make_input is not None:
            first = program.add([samples[i] for i in rows], case.layout)
        else:
            first = self.new_input(case.dtype, case.layout)
        inputs = [first] + [program.add([e[i] for i in rows]) for e in extra]
        constants.update(case.kwargs)
        for k, v in case.kwargs.items():
            if isinstance(v, Column):
                del constants[k]
                frames = [len(s) if s.ndim else 1 for s in program.values[first].samples]
                made = [v.make(self.rng, (f, *v.shape) if v.per_frame else v.shape) for f in frames]
                data[k] = program.add(made, "F" + "N" * (made[0].ndim - 1) if v.per_frame else "")
        if self.maybe(0.3):  # more arguments, of another case
            other: Case = self.one_of(test.cases)
            for k, v in other.kwargs.items():
                if not isinstance(v, Column) and k not in data:
                    constants.setdefault(k, v)
        return inputs

    def schema_call(self, name: str, last: list[int], constants: dict[str, Any]) -> list[int]:
        cls = REGISTRY[name]
        kinds = bad.INPUTS.get(name, ("photograph" if name.startswith(("decoders.", "peek")) else "image",))
        inputs = []
        for i in range(max(cls.inputs[0], len(kinds) if cls.inputs[0] else 0)):
            if i == 0 and last:
                inputs.append(self.one_of(last))
                continue
            kind = kinds[min(i, len(kinds) - 1)]
            samples = bad.DATA[kind]
            rows = self.rng.integers(0, len(samples), self.program.n)
            inputs.append(self.program.add([samples[k] for k in rows], bad.layout_of(kind)))
        asked = {k: a for k, a in cls.schema.items() if a.required}
        constants.update({k: [1] if a.vector else 1 for k, a in asked.items() if a.type in (int, float)})
        constants.update({k: v for k, v in bad.REQUIRED[""].items() if k in asked})
        constants.update(bad.REQUIRED.get(name, {}))
        return inputs

    def new_input(self, dtype: Any = None, layout: str | None = None) -> int:
        rng = self.rng
        dtype = self.one_of(TYPES) if dtype is None or self.maybe(0.15) else dtype
        layout = self.one_of(LAYOUTS) if layout is None or self.maybe(0.15) else layout
        channels = self.one_of((1, 3, 3, 3, 3, 3, 2, 4, 5, 7, 70, 0))
        ragged, shapes = self.maybe(0.6), []
        for i in range(self.program.n):
            if i and not ragged:
                shapes.append(shapes[0])
                continue
            hw = [self.one_of(EXTENTS), self.one_of(EXTENTS)]
            if self.maybe(0.08):
                hw[int(rng.integers(2))] = self.one_of((0, 0, 300, 2000, 20000))
                hw = [h if h < 300 or max(hw) == h else min(h, 3) for h in hw]
            axes = layout or "X" * int(rng.integers(0, 4))
            known = {"H": hw[0], "W": hw[1], "C": channels, "D": self.one_of((1, 2, 3)), "F": self.one_of((1, 2, 3))}
            shape = [known.get(c, self.one_of(EXTENTS[:9])) for c in axes]
            while np.prod(shape) > _MOST_ELEMENTS:
                shape[int(np.argmax(shape))] //= 2
            if self.maybe(0.03) and shape:
                shape[int(rng.integers(len(shape)))] = 0
            shapes.append(tuple(shape))
        samples = [random_array(rng, s, dtype) for s in shapes]
        if np.dtype(dtype).kind == "f":
            scale = self.one_of((1, 1, 1, 255, 1e30))
            with np.errstate(over="ignore"):
                samples = [np.asarray(x * np.dtype(dtype).type(scale)) for x in samples]
            if self.maybe(0.2):
                for x in samples:
                    if x.size:
                        x.flat[rng.integers(0, x.size, 3)] = self.one_of((np.nan, np.inf, -np.inf, 0))
        if self.maybe(0.05):
            layout = self.one_of(LAYOUTS)
            layout = layout if len(layout) == samples[0].ndim else ""
        elif self.maybe(0.1):
            layout = ""
        return self.program.add(samples, layout if len(layout) == samples[0].ndim else "")

    # Arguments

    def spoil(self, cls: type[Operator], constants: dict[str, Any], data: dict[str, int]) -> None:
        open_ = [a for k, a in cls.schema.items() if not a.deprecated and not a.hidden and k not in bad.SETTLED]
        for _ in range(int(self.one_of((0, 0, 0, 0, 0, 0, 1, 1, 2)))):
            if not open_:
                return
            arg: Arg = self.one_of(open_)
            given = [a for a in open_ if a.name in constants or a.name in data]
            if given and self.maybe(0.5):
                arg = self.one_of(given)
            constants.pop(arg.name, None)
            data.pop(arg.name, None)
            if arg.tensor and arg.type not in (str, Layout, object) and self.maybe(0.4):
                data[arg.name] = self.argument_data(arg)
            else:
                constants[arg.name] = self.argument(arg)

    def argument(self, arg: Arg) -> Any:
        if self.maybe(0.05):
            return self.one_of(_STRANGE)
        if not arg.vector:
            return self.scalar(arg)
        if self.maybe(0.1):
            return self.scalar(arg)
        n = self.one_of((0, 1, 2, 2, 2, 3, 3, 3, 4, 6, 9))
        if self.maybe(0.3):
            return [self.scalar(arg)] * n
        return [self.scalar(arg) for _ in range(n)]

    def scalar(self, arg: Arg) -> Any:
        rng = self.rng
        if arg.type is float:
            return self.one_of(_FLOATS) if self.maybe(0.6) else float(np.round(rng.normal(0, 2), 3))
        if arg.name == "iterations":  # as many take as long as they have to
            return int(rng.integers(-1, 12))
        if arg.type is int:
            return self.one_of(_INTS) if self.maybe(0.6) else int(rng.integers(-3, 12))
        if arg.type is bool:
            return self.maybe(0.5)
        if arg.type in (str, Layout):
            return self.one_of(_TEXTS)
        if arg.type is object:
            return self.one_of(_STRANGE)
        return self.one_of((*arg.type, 999, -1, "bogus", types.FLOAT, types.UINT8))

    def argument_data(self, arg: Arg) -> int:
        """Values of an argument per sample or per frame, most of them of the type and shape that it takes."""
        program, n = self.program, self.program.n
        dtype = arg.column_type if self.maybe(0.85) else np.dtype(self.one_of(TYPES))
        k = self.one_of((1, 2, 2, 2, 3, 3, 4, 6, 0))
        shape = (k,) if arg.vector else ()
        if self.maybe(0.15):
            shape = self.one_of(((), (1,), (0,), (2, 2), (2, 3), (1, 1, 1), (3, 3)))
        odd = self.maybe(0.4)
        scalar = Arg(arg.type) if arg.type in (int, float, bool) else Arg(int)

        def make(s: tuple[int, ...]) -> np.ndarray:
            values = [self.scalar(scalar) if odd else self.rng.integers(0, 4) for _ in range(int(np.prod(s)))]
            with np.errstate(all="ignore"):
                wide = np.array([float(v) for v in values], "f8").reshape(s)
                if dtype.kind in "iu":
                    info = np.iinfo(dtype)
                    return np.nan_to_num(np.clip(wide, float(info.min) / 2, float(info.max) / 2)).astype(dtype)
                return wide.astype(dtype)

        if arg.per_frame and self.maybe(0.4) and program.values:
            frames = [len(s) if s.ndim else 1 for s in self.one_of(program.values).samples]
            if max(frames) <= 40:
                return program.add([make((f, *shape)) for f in frames], "F" + "N" * len(shape))
        samples = [make(shape) for _ in range(n)]
        if self.maybe(0.05):
            samples[0] = make((5, *shape[1:])) if shape else samples[0]
        return program.add(samples)
