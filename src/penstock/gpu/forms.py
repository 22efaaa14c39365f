# SPDX-License-Identifier: Apache-2.0
"""Reads the first lines of a kernel's .cu file: its GPU form, the meaning of its arguments for launch planning, and its
launch (see kernels/core/gpu.h)."""

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
    """One launch of the function `body`: one block of `threads` threads per `portion` elements or bytes of a tensor."""

    body: str
    portion: int
    in_bytes: bool
    of_output: bool
    tensor: int
    threads: int


class Description(NamedTuple):
    """The first lines of a .cu file, `// key: value`. Values that are fields name fields of the argument struct."""

    form: str  # one of FORMS
    form_with_one_input: str
    constants: tuple[str, ...] = ()  # fields that are compiled in; equal for all samples
    axes: str = ""  # for each output axis, the input axis
    begin: str = ""  # for each input axis, the start of the part that is read
    begin_minus: str = ""  # subtracted from `begin`: the start of the part in memory
    border: str = ""  # nonzero if neighbours in the output may not be neighbours in the input
    first_axis: str = ""  # the first axis that a head computes along ...
    n_axes: str = ""  # ... and the number of these axes
    status: str = ""  # address where the kernel writes 1 for each sample that it can't process
    launch: SimpleLaunch | None = None
    joined: tuple[str, ...] = ()  # a preceding kernel, and the kernel that fuses it with this one


@cache
def describe(kernel: str) -> Description | None:
    """The description of a kernel such as "color/linear"; None if it runs only on the CPU. Raises ImportError for
    invalid lines."""
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
        elif i:  # the first line may be the licence
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
    """As `describe`, for a kernel that must have a GPU form."""
    description = describe(kernel)
    if description is None:
        raise InternalError(f"the kernel {kernel} has no GPU form")
    return description


def constants_of(kernel: str) -> tuple[str, ...]:
    """The fields of a LOCAL's or gather's arguments that are compiled in; equal for all samples."""
    return described(kernel).constants


def struct_of(kernel: str) -> str:
    """The name of a kernel's template: "color_matrix" gives "ColorMatrix"."""
    return "".join(w[:1].upper() + w[1:] for w in kernel.rsplit("/", 1)[-1].split("_"))


@cache
def beside(kernel: str) -> ModuleType | None:
    """The Python module next to a .cu file, which plans launches that its first lines can't describe; None if there is
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
    """The function that plans the launches of a block or own kernel: `plan(task) -> list[Phase]` of the Python file
    next to it, or one for its `launch` line."""
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
    """`alone(task) -> list[Phase] | None` of the Python file next to a LOCAL: its launches if nothing is fused with it;
    None if it is launched like any other LOCAL."""
    return getattr(beside(kernel), "alone", None)
