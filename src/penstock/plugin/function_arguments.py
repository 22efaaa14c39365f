# SPDX-License-Identifier: Apache-2.0
"""For type checkers: the arguments that function operators pass to `fn.python_function`. Not imported at run time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class CallArguments(TypedDict, total=False):
    """Arguments of every call."""

    output_layouts: str | Sequence[str] | None
    preserve: bool
    bytes_per_sample_hint: Sequence[int] | int | None
    name: str | None


class PlacedArguments(CallArguments, total=False):
    """Also the device."""

    device: str | None


class FunctionArguments(PlacedArguments, total=False):
    """Also the form of the function's inputs and outputs."""

    num_outputs: int
    batch_processing: bool
