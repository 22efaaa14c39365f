# SPDX-License-Identifier: Apache-2.0
"""Keyword arguments of an augmentation's function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, signature
from typing import Any

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_BY_NAME = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


class MissingArgException(Exception):
    """Raised if an augmentation is called without arguments that it needs."""

    def __init__(self, message: str, augmentation: Any, missing_args: list[str]):
        super().__init__(message)
        self.augmentation, self.missing_args = augmentation, missing_args


class UnusedArgException(Exception):
    """Raised if arguments are given that no augmentation accepts."""

    def __init__(self, message: str, unused_args: list[str]):
        super().__init__(message)
        self.unused_args = unused_args


def _named(function: Callable[..., Any], skip: int) -> dict[str, Parameter]:
    """The parameters that can be passed by name, without the first `skip` positional ones."""
    parameters = list(signature(function).parameters.values())
    rest = [p for i, p in enumerate(parameters) if i >= skip or p.kind not in _BY_POSITION]
    return {p.name: p for p in rest if p.kind in _BY_NAME}


def filter_extra_accepted_kwargs(
    fun: Callable[..., Any], kwargs: dict[str, Any], skip_positional: int = 0
) -> dict[str, Any]:
    """The `kwargs` that the function accepts."""
    accepted = _named(fun, skip_positional)
    return {name: value for name, value in kwargs.items() if name in accepted}


def get_required_kwargs(fun: Callable[..., Any], skip_positional: int = 0) -> list[str]:
    """The names of required arguments."""
    return [n for n, p in _named(fun, skip_positional).items() if p.default is Parameter.empty]


def get_num_positional_args(fun: Callable[..., Any]) -> int:
    """Number of arguments that can be passed by position."""
    return sum(p.kind in _BY_POSITION for p in signature(fun).parameters.values())


def get_missing_kwargs(fun: Callable[..., Any], kwargs: dict[str, Any], skip_positional: int = 0) -> list[str]:
    """The names of required arguments that are missing in `kwargs`."""
    return [n for n in get_required_kwargs(fun, skip_positional) if n not in kwargs]


def filter_unused_args(augmentations: Iterable[Any], kwargs: dict[str, Any]) -> list[str]:
    """The names in `kwargs` that no augmentation accepts."""
    used = {name for a in augmentations for name in filter_extra_accepted_kwargs(a.op, kwargs, 2)}
    return [name for name in kwargs if name not in used]


def forbid_unused_kwargs(augmentations: Iterable[Any], kwargs: dict[str, Any], call_name: str) -> None:
    """Raises UnusedArgException if there are arguments that no augmentation accepts."""
    unused = filter_unused_args(augmentations, kwargs)
    if unused:
        names = ", ".join(f"`{n}`" for n in unused)
        raise UnusedArgException(
            f"{call_name} got unexpected kwarg{'s' * (len(unused) > 1)}: none of the augmentations takes {names}",
            unused,
        )
