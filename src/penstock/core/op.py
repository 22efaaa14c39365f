# SPDX-License-Identifier: Apache-2.0
"""Declaration of operators.

An operator is a class in operators/<family>/<name>.py: its class body is its schema (arguments as `Arg`, `PerSample`,
`PerFrame`), `outputs` its shape rule, and `params` fills the argument rows of its kernel as columns. fn, ops, stubs,
docs, checks and tests are generated from the class. CONTRIBUTING.md writes one step by step.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from . import dtypes, kernels, rng
from .batch import Batch, Spec
from .dtypes import DALIDataType, DALIImageType, DALIInterpType
from .errors import PipelineError, UnexpectedArgument, suggest
from .tracing import IMMEDIATE, Native

REGISTRY: dict[str, type[Operator]] = {}  # by public name: "resize", "readers.file"
R = TypeVar("R")
REQUIRED: Any = type("Required", (), {"__repr__": lambda self: "required"})()


@cache
def snake_case(name: str) -> str:
    """The fn name of an ops class: "CoordFlip" gives "coord_flip". BBox, TFRecord and MXNet are one word each."""
    name = re.sub("BBox|TFRecord|MXNet", lambda word: word[0].capitalize(), name)
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def rule(method: Callable[..., R]) -> Callable[..., R]:
    """Tells type checkers that an operator may override `method` with its own number of named inputs."""
    return method


class Layout(str):
    """Type of arguments that are layouts ("HWC") or axis names ("WH")."""


_ENUMS: dict[type, str] = {
    DALIDataType: "a DALIDataType such as types.FLOAT",
    DALIImageType: "a DALIImageType such as types.RGB",
    DALIInterpType: "a DALIInterpType such as types.INTERP_LINEAR",
}
_COLUMN_TYPES = {float: np.dtype("f4"), int: np.dtype("i4"), bool: np.dtype("?")}
_LONG = np.dtype("i8")


class Arg:
    """A keyword argument fixed when the pipeline is built.

    `type` is float, int, bool, str, Layout, an enumeration, object, or a list of one of them for a vector ([float]). A
    `default` of None means: not given. `hidden` arguments are accepted for compatibility and have no effect. If it is
    `ragged`, samples may have vectors of different lengths, given by `Arguments.lengths`.
    """

    tensor = False
    per_frame = False
    is_index = False  # accepts only scalar integers as data

    def __init__(
        self,
        type: Any,
        default: Any = REQUIRED,
        doc: str = "",
        *,
        hidden: bool = False,
        deprecated: str = "",
        ragged: bool = False,
        bits: int = 32,
    ):
        self.vector = isinstance(type, list)
        self.type = type[0] if isinstance(type, list) else type
        self.default, self.doc, self.hidden, self.deprecated, self.ragged = default, doc, hidden, deprecated, ragged
        self.name, self.bits = "", 64 if hidden else bits  # size of integers; 32 bits by default, as in DALI

    def __set_name__(self, owner, name):
        self.name = name

    @property
    def required(self) -> bool:
        return self.default is REQUIRED

    @property
    def column_type(self) -> np.dtype:
        return _LONG if self.type is int and self.bits == 64 else _COLUMN_TYPES.get(self.type, np.dtype("i4"))

    def convert(self, value: Any) -> Any:
        """Converts the value to the argument's type. Raises TypeError or ValueError that says what is accepted."""
        if value is None:
            return None
        if not self.vector:
            return self._scalar(value)
        if isinstance(value, (str, bytes)) or (not isinstance(value, (list, tuple)) and np.ndim(value) == 0):
            return [self._scalar(value)]
        return [self._scalar(v) for v in (value.tolist() if isinstance(value, np.ndarray) else value)]

    def _scalar(self, v: Any) -> Any:
        t = self.type
        if t is object:
            return v
        if hasattr(v, "__array__") and (array := np.asarray(v)).size == 1:
            v = array.item()
        if isinstance(v, (list, tuple)) and len(v) == 1 and not self.vector:
            v = v[0]
        if t in (float, int, bool):
            if isinstance(v, (bool, int, float)) and not (t is int and isinstance(v, float) and not v.is_integer()):
                if t is int and not -(1 << self.bits - 1) <= v < 1 << self.bits - 1:
                    raise ValueError(f"argument '{self.name}' takes integers of {self.bits} bits; got {v}")
                return t(v)
        elif t in _ENUMS:
            if isinstance(v, t):
                return v
            if type(v) is int and v in t._value2member_map_:
                return t(v)
            if t is DALIDataType:
                if isinstance(v, type) and v in (float, int, bool):
                    return {float: DALIDataType.FLOAT, int: DALIDataType.INT32, bool: DALIDataType.BOOL}[v]
                if not isinstance(v, str):
                    return dtypes.from_numpy(v)
        elif t in (str, Layout) and isinstance(v, (str, bytes, os.PathLike)):
            return t(os.fsdecode(v))
        elif t is str and isinstance(v, bool):
            return str(v)  # for arguments that were boolean once, as in DALI
        raise TypeError(f"argument '{self.name}' takes {self.accepts()}, got {v!r}")

    def accepts(self) -> str:
        names = {Layout: "a layout", str: "a string", float: "a number", int: "an integer", bool: "a boolean", **_ENUMS}
        name = names.get(self.type) or (f"a {self.type.__name__}" if self.type is not object else "any object")
        return f"{name} or a list of them" if self.vector else name


class PerSample(Arg):
    """An argument that may also be a DataNode: one value (or vector) per sample. Operators see a column (n,) or (n,
    k)."""

    tensor = True


class PerFrame(PerSample):
    """A `PerSample` that may also have one value per frame of a sequence, in a DataNode whose layout begins with F."""

    per_frame = True


class Returned:
    """The value of an argument that takes outputs of other operator calls: a single one, a list or a dictionary."""

    def __init__(self, outputs: Iterable[Any]):
        self.outputs = tuple(outputs)


class Arguments:
    """The arguments of an operator for one batch, by name: fixed values, or columns per sample; None if not given.

    Columns must not be modified. `n` is the number of samples (of frames, if sequences are processed frame by frame),
    `random` the operator's random numbers. `batches` are the inputs that the operator `peeks` into, None for the
    others. `given` is the set of the names of arguments that the user gave. `Operator.plan` may add attributes for
    values that `outputs`, `region` and `params` share. `memo` is for what is computed from the arguments alone: if none
    of them is data, it is the same dictionary for all batches of `n` samples.
    """

    n: int
    random: rng.Random
    batches: list[Batch | None]
    sample_of: np.ndarray | None = None  # if rows are frames: the sample of each row
    memo: dict[Any, Any]
    row_lengths: Mapping[str, np.ndarray] = {}  # (n,) vector lengths of arguments whose length differs between rows
    native: Native = IMMEDIATE  # calls native functions with columns
    pool: kernels.Pool  # in `run`: threads for kernels
    gpu: Any = None  # in `run` of an operator that `runs_on_gpu`, on the GPU: see exec/gpu/functions.py

    def __init__(self, n: int, random: rng.Random, values: dict[str, Any]):
        self.__dict__ = own = values.copy()  # faster than setting attributes one by one
        own["n"], own["random"] = n, random

    def lengths(self, name: str) -> np.ndarray:
        """Lengths (n,) of the vector `name` of each sample; the rest of its row in the column is zero."""
        lengths = self.row_lengths.get(name)
        return np.full(self.n, getattr(self, name).shape[1], "i8") if lengths is None else lengths

    def peeked(self, i: int) -> Batch:
        """The batch of input `i`. Requires that the operator peeks into it."""
        batch = self.batches[i]
        assert batch is not None, f"input {i} is not among those that the operator peeks into"
        return batch

    def __getattr__(self, name: str) -> Any:  # only for type checkers: arguments are attributes
        raise AttributeError(f"[internal error] the operator has no argument '{name}'")

    if TYPE_CHECKING:

        def __setattr__(self, name: str, value: Any) -> None: ...  # attributes added by `plan`


class Operator:
    """Base of all operators. Arguments every operator has."""

    module: ClassVar[str] = ""  # "decoders" for fn.decoders.image
    devices: ClassVar[tuple[str, ...]] = ("cpu",)  # if no class sets it: also "gpu" if its kernel has a .cu file
    inputs: ClassVar[tuple[int, int]] = (1, 1)  # smallest and largest number of inputs
    positional: ClassVar[tuple[str, ...]] = ()  # arguments accepted by position if there are no inputs
    layouts: ClassVar[tuple[str, ...]] = ()  # accepted for input 0; () accepts all
    kernel: ClassVar[str] = ""  # "color/linear" for kernels/color/linear.h
    by_frame: bool = True  # a sequence ("F...") is passed frame by frame, without its F
    runs_frames: ClassVar[bool] = False  # `run` also gets frames as rows: of inputs, or else of per-frame arguments
    in_place: ClassVar[bool] = False  # its kernel can write its output over its first input
    windowed: ClassVar[str] = ""  # axes along which it can compute only a window of its output, e.g. "HW"
    # Operators that may follow it on the CPU, each with the operator that fuses the two.
    fuses_with: ClassVar[dict[str, str]] = {}
    gpu_stage: ClassVar[str] = ""  # "module:Class" of the `gpu.stage.GpuStage` that runs it on the GPU outside chains
    cuts: ClassVar[bool] = False  # returns a window of its input, usually a small part
    reads_rest: ClassVar[bool] = False  # reads the rest of partially read files as needed (unread.h)
    peeks: ClassVar[tuple[int, ...]] = ()  # inputs whose data `plan` reads (a.batches[i]); made before its chain starts
    copied: ClassVar[tuple[int, ...]] = ()  # inputs that a GPU operator also accepts from the CPU, and copies
    metadata: ClassVar[tuple[int, ...]] = ()  # inputs of which only spec and sources are read, on any device
    n_named: ClassVar[int | None] = None  # how many inputs determine the source names of samples; None: all
    regroups: ClassVar[bool] = False  # `run` returns samples of its inputs, not copies, and works on both devices
    by_address: ClassVar[bool] = False  # its kernel gets no inputs; `params` passes their addresses (a.batches[i].rows)
    runs_on_gpu: ClassVar[bool] = False  # `run` also accepts GPU batches; `a.gpu` is then set
    aliases: ClassVar[bool] = False  # no kernel: output 0 is the memory of input 0 with another spec
    shortens: ClassVar[int | None] = None  # from this output on, the kernel sets how much of each sample it has written
    n_inputs: int = 0  # of this call; used by `n_outputs`
    in_order: ClassVar[bool] = False  # `run` is called for one batch at a time, in order
    is_prompt: bool = False  # `run`, or `take` and `load`, do not wait and call no user code
    sample_error: ClassVar[type[PipelineError]] = PipelineError  # error class raised for bad samples
    is_light: ClassVar[bool] = False  # costs little more than copying its output: workers may leave it to the trainer
    mixes_samples: ClassVar[bool] = False  # an output sample depends on other samples of the batch
    # Its rules depend only on their inputs, so they can be traced (tracing.py) and skipped for later batches. Results
    # may scale with the number of samples, but control flow may not depend on it.
    traced: ClassVar[bool] = True
    # Old public names: "ImageDecoder" gives ops.ImageDecoder and fn.image_decoder.
    deprecated: ClassVar[tuple[str, ...]] = ()
    former_defaults: ClassVar[dict[str, dict[str, Any]]] = {}  # defaults of an old name that differ: {"Old": {"x": 1}}
    experimental: ClassVar[bool] = False  # also available in fn.experimental (its former place)
    tensors: ClassVar[tuple[str, ...]] = ()  # arguments that may also be arrays of any shape, inputs of `expand`
    schema: ClassVar[dict[str, Arg]] = {}
    fn_name: ClassVar[str] = ""

    preserve = Arg(bool, False, "Whether to keep the operator in the graph even if its outputs are not used.")
    bytes_per_sample_hint = Arg([int], None, "Accepted for compatibility; memory comes from a pool.", hidden=True)

    def __init_subclass__(cls, abstract: bool = False) -> None:
        cls.schema = {k: v for c in reversed(cls.__mro__) for k, v in vars(c).items() if isinstance(v, Arg)}
        if isinstance(vars(cls).get("frames"), bool):
            raise TypeError(f"{cls.__name__}: the flag `frames` of operators is called `by_frame`")
        if abstract or cls.__name__.startswith("_"):
            return
        if all("devices" not in vars(c) for c in cls.__mro__ if c is not Operator):
            makes = cls.inputs[0] == 0 and not cls.is_native()
            runs = cls.is_native() and (cls.aliases or kernels.has_gpu_form(cls.kernel))
            cls.devices = ("cpu", "gpu") if runs or makes or cls.regroups else ("cpu",)
        name = snake_case(cls.__name__)
        cls.fn_name = f"{cls.module}.{name}" if cls.module else name
        known = REGISTRY.get(cls.fn_name)
        if known is not None and (known.__module__ != cls.__module__ or known.__module__.startswith("penstock.")):
            raise TypeError(f"there is an operator called {cls.fn_name} already, in {known.__module__}")
        REGISTRY[cls.fn_name] = cls

    def __init__(self, values: dict[str, Any], given: Collection[str] = ()):
        """`values` are checked constants; arguments that are DataNodes or not given have their default. `given` are the
        names of the arguments that the user set."""
        self.values, self.given = values, frozenset(given)
        self.setup()

    @classmethod
    def display_name(cls) -> str:
        return f"fn.{cls.fn_name}"

    @classmethod
    def find_arg(cls, name: str) -> Arg:
        if name in cls.schema:
            return cls.schema[name]
        near = suggest(name, cls.schema)
        raise UnexpectedArgument(f"{cls.display_name()}() got an unexpected argument '{name}'.{near}")

    @classmethod
    def by_name(cls, given: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Merges positional arguments into keyword arguments, for operators with `positional` arguments."""
        named = dict(zip(cls.positional, given))
        twice = sorted(named.keys() & kwargs.keys())
        if len(given) > len(cls.positional) or twice:
            what = f"'{twice[0]}' twice" if twice else f"{len(given)} positional arguments"
            takes = f"takes {', '.join(cls.positional)} by position" if cls.positional else "takes arguments by name"
            raise TypeError(f"{cls.display_name()} {takes}; got {what}")
        return {**named, **kwargs}

    @classmethod
    def expand(cls, inputs: tuple, kwargs: dict[str, Any], call: Callable[..., Any]) -> Any:
        """For operators composed of others: calls them by `call(class, inputs, kwargs)` and returns their outputs, or
        None."""
        return None

    def mixed_on_cpu(self) -> bool:
        """Whether the CPU can do the work of its mixed form, with equal results."""
        return False

    def ahead(self, n_inputs: int) -> tuple[int, ...]:
        """Inputs that must be computed before its chain starts, as the rules read them."""
        return tuple(range(n_inputs)) if self.by_address else tuple(i for i in self.peeks if i < n_inputs)

    def window_first(self) -> tuple[type[Operator], frozenset[str]] | None:
        """If it works on a window of its input: an operator that only cuts the window, and the names of the arguments
        that define the window. Without these, the operator gives the same result on the cut input. Otherwise None."""
        return None

    # Methods that operators override -----------------------------------------------------------------------------

    def setup(self) -> None:
        """Checks the fixed arguments (self.values) beyond their types, when the pipeline is built."""

    def n_outputs(self) -> int:
        return 1

    def returns_list(self) -> bool:
        """Whether a call returns a list of outputs even if there is only one."""
        return False

    def output_names(self) -> tuple[str, ...] | None:
        """The keys of the outputs, if a call returns them as a dictionary; otherwise None."""
        return None

    @rule
    def plan(self, a: Arguments, *inputs: Spec) -> None:
        """Computes values that the rules below share, once per batch, and stores them on `a`. Raises SampleErrors for
        samples that can't be processed."""

    @rule
    def outputs(self, a: Arguments, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        """The shape rule: returns the specs of the outputs, given those of the inputs, before any pixel is
        processed."""
        raise NotImplementedError

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray] | None:
        """Returns the window of input 0 that is needed for the window `out.origin`, `out.stored` of output 0: its
        origin and size, each (n, ndim), inside the input. None: all of it. Override it only in operators whose
        kernels use `x.origin`."""
        return None

    @rule
    def params(self, a: Arguments, *specs: Spec) -> dict[str, Any]:
        """Returns the kernel's arguments as columns or constants. `specs` are the inputs, then the outputs."""
        return {}

    @rule
    def kernel_for(self, a: Arguments, *specs: Spec) -> str:
        """Returns the name of the kernel; `kernel` unless it depends on the types."""
        return self.kernel

    def source_names(
        self, names: list[Sequence[str] | None], argument: Callable[[str], list[np.ndarray] | None]
    ) -> Sequence[str] | None:
        """Returns the origins of output samples if they differ from those of the inputs; else None. `argument(name)`
        gives the values of an argument per sample."""
        return None

    @rule
    def run(self, a: Arguments, *inputs: Batch) -> Batch | tuple[Batch, ...]:
        """For operators without a kernel: computes the outputs from the inputs, for a whole batch."""
        raise NotImplementedError

    @classmethod
    def is_native(cls) -> bool:
        """Whether it has only kernels, and no `run`."""
        return cls.run is Operator.run

    def in_chain(self, n_inputs: int) -> bool:
        """Whether this call is a kernel step of a chain; otherwise it is executed by `run`."""
        return self.is_native()


class Pointwise(Operator, abstract=True):
    """Base of operators whose output values depend only on the input value at the same position: the shape is kept, and
    a window of the output needs the same window of the input."""

    windowed = "FDHWC"
    is_light = True

    @rule
    def outputs(self, a: Arguments, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        return inputs[0].like()

    def region(self, a: Arguments, x: Spec, out: Spec) -> tuple[np.ndarray, np.ndarray] | None:
        return out.origin, out.stored


class Seeded(Operator, abstract=True):
    """Mixin for operators that draw random numbers."""

    seed = Arg(
        int, -1, "Seed. If negative, derived from the pipeline's seed and the operator's position in it.", bits=64
    )
