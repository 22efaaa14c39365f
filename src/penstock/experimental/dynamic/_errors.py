# SPDX-License-Identifier: Apache-2.0
"""Error messages of calls."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.errors import ArgumentTypeError, ArgumentValueError, PipelineError, Site, UnexpectedArgument, of_argument
from ...core.op import REGISTRY
from ...core.source import Source

_FUNCTION = re.compile(r"\bfn((?:\.[a-z_]\w*)+)")
_OF_PIPELINES = "which was used in the pipeline definition with the following traceback:"


def describe(name: str, device: str, sites: Sequence[Site], cause: str) -> str:
    where = "called here:\n\n" + "\n".join(map(str, sites)) + "\n\n" if sites else ""
    who = f"Error in {device.upper()} operator `penstock.experimental.dynamic.{name}`,"
    return f"{who}\n{where}encountered:\n\n{in_names_here(cause)}"


def of_samples(
    name: str,
    device: str,
    sites: Sequence[Site],
    reasons: dict[int, str],
    sources: Any,
    kind: type[PipelineError] = PipelineError,
) -> PipelineError:
    """The error for bad samples. `sources[row]`: origin of a sample."""
    row, reason = min(reasons.items())
    n = len(reasons) - 1
    more = f"\n({n} more bad sample{'s' * (n > 1)} in this batch)" if n else ""
    source = f": {sources[row]}" if sources is not None and sources[row] else ""
    return kind(describe(name, device, sites, f"{reason}\nSample {row} of the batch{source}{more}"))


def _name_here(found: re.Match) -> str:
    """Converts `fn.cast` to `ndd.cast`."""
    cls = REGISTRY.get(found[1][1:])
    if cls is None:
        return found[0]
    if issubclass(cls, Source):
        return f"ndd.{cls.module}.{cls.__name__}".replace("..", ".")
    return f"ndd{found[1]}"


def in_names_here(text: str) -> str:
    """Replaces names of operators in a text by their names in this mode, except in lines of user code."""
    return "\n".join(x if x.startswith("  ") else _FUNCTION.sub(_name_here, x) for x in text.split("\n"))


def retold(text: str) -> str:
    """Converts the message of a pipeline's error to that of a call."""
    text = text.replace("operator `penstock.fn.", "operator `penstock.experimental.dynamic.")
    return in_names_here(text.replace(_OF_PIPELINES, "called here:"))


@contextmanager
def of_calls() -> Iterator[None]:
    """Converts names in errors of a call."""
    try:
        yield
    except (TypeError, ValueError) as e:
        if type(e) not in (TypeError, ValueError, ArgumentTypeError, ArgumentValueError, UnexpectedArgument):
            raise
        raise of_argument(e, in_names_here(str(e))) from e.__cause__
