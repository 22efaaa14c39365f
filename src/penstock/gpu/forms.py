# SPDX-License-Identifier: Apache-2.0
"""Which kernels have a GPU form, and which form (see kernels/core/gpu.h)."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Callable
from functools import cache
from typing import Any

from ..core import kernels

LOCAL = ("values", "pixels", "places")
FORMS = (*LOCAL, "gather", "block", "own")


@cache
def form_of(kernel: str, inputs: int = 0) -> str:
    """The form of "color/linear", one of FORMS; "" if the kernel runs on the CPU only. A kernel may have another form
    where it is given one input."""
    path = os.path.join(kernels.ROOT, f"{kernel}.cu")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        text = f.read()
    found = re.search(r"^// form: (\w+)", text, re.M)
    if inputs == 1:
        found = re.search(r"^// form with one input: (\w+)", text, re.M) or found
    if not found or found[1] not in FORMS:
        raise ImportError(f"[internal error] {kernel}.cu does not say which form it has: {', '.join(FORMS)}")
    return found[1]


@cache
def constants_of(kernel: str) -> tuple[str, ...]:
    """The fields of a LOCAL's or a gather's arguments that are compiled in, by its line `// constants: from, to`. They
    are the same for all samples."""
    with open(os.path.join(kernels.ROOT, f"{kernel}.cu"), encoding="utf-8") as f:
        found = re.search(r"^// constants: (.*)", f.read(), re.M)
    return tuple(re.split(r",\s*", found[1].strip())) if found else ()


def struct_of(kernel: str) -> str:
    """The name of a kernel's template: "color_matrix" gives "ColorMatrix"."""
    return "".join(w[:1].upper() + w[1:] for w in kernel.rsplit("/", 1)[-1].split("_"))


@cache
def companion(kernel: str) -> Callable[..., Any]:
    """`plan` of penstock/gpu/plans/<name>.py, which a block or own kernel needs."""
    return importlib.import_module(f"{__package__}.plans.{kernel.rsplit('/', 1)[-1]}").plan
