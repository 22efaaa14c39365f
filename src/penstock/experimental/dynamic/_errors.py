# SPDX-License-Identifier: Apache-2.0
"""The texts of errors of calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.errors import PipelineError, Site

_OF_PIPELINES = "which was used in the pipeline definition with the following traceback:"


def describe(name: str, device: str, sites: Sequence[Site], cause: str) -> str:
    where = "called here:\n\n" + "\n".join(map(str, sites)) + "\n\n" if sites else ""
    return f"Error in {device.upper()} operator `penstock.experimental.dynamic.{name}`,\n{where}encountered:\n\n{cause}"


def of_samples(name: str, device: str, sites: Sequence[Site], reasons: dict[int, str], sources: Any) -> PipelineError:
    """That of samples which can't be handled; `sources[row]` says where each came from."""
    row, reason = min(reasons.items())
    n = len(reasons) - 1
    more = f"\n({n} more bad sample{'s' * (n > 1)} in this batch)" if n else ""
    source = f": {sources[row]}" if sources is not None and sources[row] else ""
    return PipelineError(describe(name, device, sites, f"{reason}\nSample {row} of the batch{source}{more}"))


def retold(text: str) -> str:
    """An error of a pipeline as one of a call."""
    return text.replace("operator `penstock.fn.", "operator `penstock.experimental.dynamic.").replace(
        _OF_PIPELINES, "called here:"
    )
