# SPDX-License-Identifier: Apache-2.0
"""What a kernel's .cu file says of itself in its first lines: its form on the GPU, what its arguments mean to whoever
plans launches, and its launch (see kernels/core/gpu.h)."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from functools import cache, partial
from types import ModuleType
from typing import Any, NamedTuple

from ..core import kernels
from ..core.errors import InternalError

LOCAL = ("values", "pixels", "places")
FORMS = (*LOCAL, "gather", "block", "own")
_LAUNCH = re.compile(r"(\w.*\(l\)); (\d+) (elements|bytes) of (out|in)\[(\d)\] per block of (\d+) threads$")


class SimpleLaunch(NamedTuple):
    """One launch of the function `body`: a block of so many threads for so many elements or bytes of a tensor."""

    body: str
    portion: int
    in_bytes: bool
    of_output: bool
    tensor: int
    threads: int


class Description(NamedTuple):
    """The first lines of a .cu file, `// key: value`. Values that are fields are in the struct of arguments."""

    form: str  # one of FORMS
    form_with_one_input: str
    constants: tuple[str, ...] = ()  # fields that are compiled in; they are the same for all samples
    axes: str = ""  # per axis of the output, which axis of the input it is
    begin: str = ""  # per axis of the input, where the part that is read begins
    begin_minus: str = ""  # what is to be subtracted from `begin`: where the part lies that is in memory
    border: str = ""  # not 0: neighbours in the output may not be neighbours in the input
    first_axis: str = ""  # the first axis that a head computes along ...
    n_axes: str = ""  # ... and how many these are
    status: str = ""  # where the kernel writes a byte of 1 for a sample that it can't handle
    launch: SimpleLaunch | None = None
    joined: tuple[str, ...] = ()  # a kernel, and the one that does both where this one alone reads what it makes


@cache
def describe(kernel: str) -> Description | None:
    """That of "color/linear"; None if the kernel runs on the CPU only. Raises ImportError for lines that are wrong."""
    path = kernels.file_of(f"{kernel}.cu")
    if not path:
        return None
    with open(path, encoding="utf-8") as f:
        text = f.read()
    fields = (kernels.kernel(kernel).args.names or ()) if kernels.file_of(f"{kernel}.h") else ()
    try:
        return _parse(text, fields)
    except ValueError as e:
        raise ImportError(f"[internal error] the first lines of {path}: {e}") from None


def _parse(text: str, fields: tuple[str, ...]) -> Description:
    """Raises ValueError."""
    said: dict[str, str] = {}
    for i, line in enumerate(text.splitlines()):
        found = re.fullmatch(r"// ([a-z ]+): (.*)", line)
        if found:
            said[found[1]] = found[2].strip()
        elif i:  # the first line may name the licence
            break
    known: dict[str, Any] = {"form": _form(said.pop("form", ""))}
    known["form_with_one_input"] = _form(said.pop("form with one input", known["form"]))
    for key, value in said.items():
        if key == "launch":
            known[key] = _simple_launch(value)
            continue
        if key == "joined":
            known[key] = _joined(value)
            continue
        names = re.split(r" - |, ", value)
        if missing := [n for n in names if n not in fields]:
            raise ValueError(f"'{key}' names {', '.join(missing)}, but the arguments are {', '.join(fields)}")
        if key == "constants":
            known[key] = tuple(names)
        elif key in ("axes", "border", "status") and len(names) == 1:
            known[key] = names[0]
        elif key == "begin" and len(names) <= 2:
            known |= zip(("begin", "begin_minus"), names)
        elif key == "computes along" and len(names) == 2:
            known |= zip(("first_axis", "n_axes"), names)
        else:
            raise ValueError(f"'{key}: {value}' is not understood; kernels/core/gpu.h lists what can be said")
    return Description(**known)


def _form(name: str) -> str:
    if name not in FORMS:
        raise ValueError(f"'form: {name}' is none of {', '.join(FORMS)}")
    return name


def _simple_launch(value: str) -> SimpleLaunch:
    found = _LAUNCH.match(value)
    if found is None:
        raise ValueError(
            f"'launch: {value}' does not read as 'f<To0::T>(l); 1024 elements of out[0] per block of 256 threads'"
        )
    body, portion, unit, where, tensor, threads = found.groups()
    return SimpleLaunch(f"{body};", int(portion), unit == "bytes", where == "out", int(tensor), int(threads))


def _joined(value: str) -> tuple[str, ...]:
    found = re.fullmatch(r"(\w+/\w+) by (\w+/\w+)", value)
    if found is None:
        raise ValueError(f"'joined: {value}' does not read as 'family/first by family/both'")
    return found.groups()


def described(kernel: str) -> Description:
    """As `describe`, of a kernel that has a GPU form."""
    description = describe(kernel)
    if description is None:
        raise InternalError(f"the kernel {kernel} has no GPU form")
    return description


@cache
def form_of(kernel: str, inputs: int = 0) -> str:
    """The form of "color/linear", one of FORMS; "" if the kernel runs on the CPU only. A kernel may have another form
    where it is given one input."""
    description = describe(kernel)
    if description is None:
        return ""
    return description.form_with_one_input if inputs == 1 else description.form


def constants_of(kernel: str) -> tuple[str, ...]:
    """The fields of a LOCAL's or a gather's arguments that are compiled in. They are the same for all samples."""
    return described(kernel).constants


def struct_of(kernel: str) -> str:
    """The name of a kernel's template: "color_matrix" gives "ColorMatrix"."""
    return "".join(w[:1].upper() + w[1:] for w in kernel.rsplit("/", 1)[-1].split("_"))


@cache
def beside(kernel: str) -> ModuleType | None:
    """The Python file beside a .cu file, which says more of its launches than its first lines can; None: there is
    none."""
    path = kernels.file_of(f"{kernel}.py")
    if not path:
        return None
    spec = importlib.util.spec_from_file_location(f"penstock.kernels.{kernel.replace('/', '.')}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def companion(kernel: str) -> Callable[..., Any]:
    """What plans the launches of a block or own kernel: `plan(task) -> list[Phase]` of the Python file beside it, or
    what its line `launch` says."""
    module, launch = beside(kernel), described(kernel).launch
    if (module is not None and hasattr(module, "plan")) == (launch is not None):
        raise ImportError(
            f"[internal error] the launch of a kernel stands either in a line `// launch: ...` of {kernel}.cu or in "
            f"`plan` of {kernel}.py; found {'both' if launch else 'neither'}"
        )
    if launch is None:
        return module.plan  # type: ignore[union-attr]
    from .launch import simple_launch

    return partial(simple_launch, launch)


@cache
def alone(kernel: str) -> Callable[..., Any] | None:
    """`alone(task) -> list[Phase] | None` of the Python file beside a LOCAL: its launches where nothing is fused with
    it, or None where it is launched as any other."""
    return getattr(beside(kernel), "alone", None)
