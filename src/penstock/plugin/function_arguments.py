# SPDX-License-Identifier: Apache-2.0
"""The arguments that functions as operators hand on to `fn.python_function`, as type checkers see them. Nobody else
imports it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict


class CallArguments(TypedDict, total=False):
    """Those of every call."""

    output_layouts: str | Sequence[str] | None
    preserve: bool
    bytes_per_sample_hint: Sequence[int] | int | None
    name: str | None


class PlacedArguments(CallArguments, total=False):
    """And where it runs."""

    device: str | None


class FunctionArguments(PlacedArguments, total=False):
    """And what the function takes and gives."""

    num_outputs: int
    batch_processing: bool
