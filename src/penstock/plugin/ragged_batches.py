# SPDX-License-Identifier: Apache-2.0
"""Shared by the iterators over batches of samples of different shapes. Imports no framework."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from .errors import IteratorError


def tags_of(output_types: Sequence[str] | None, output_map: Sequence[str], known: Iterable[str]) -> list[str]:
    """The tag of each output. Raises ValueError for unknown tags."""
    known = list(known)
    tags = [known[0]] * len(output_map) if output_types is None else list(output_types)
    if len(tags) != len(output_map):
        raise ValueError(f"output_types has {len(tags)} tags, but output_map has {len(output_map)} names")
    for tag in tags:
        if tag not in known:
            raise IteratorError(f"output_types takes {', '.join(map(repr, known))}; got {tag!r}")
    return tags


def names_with_lengths(output_map: Sequence[str], has_lengths: Sequence[bool]) -> None:
    """Raises ValueError if the name of lengths is also that of an output."""
    for name, has in zip(output_map, has_lengths):
        if has and f"{name}_lengths" in output_map:
            raise ValueError(
                f"output '{name}' is padded, and its lengths are called '{name}_lengths', which is another name in "
                "output_map; rename one of them"
            )


def check_padding(multiple: Any) -> None:
    if isinstance(multiple, bool) or not isinstance(multiple, int) or multiple < 1:
        raise ValueError(f"pad_to_multiple_of takes an integer of at least 1; got {multiple!r}")
