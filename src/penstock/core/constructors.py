# SPDX-License-Identifier: Apache-2.0
"""Errors for unknown argument names, which name the called class or function and suggest the nearest valid name."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Iterable
from typing import Any, Concatenate, ParamSpec, TypeVar

from .errors import NearestMembers as NearestMembers
from .errors import no_attribute as no_attribute
from .errors import suggest as suggest
from .errors import warn_deprecated as warn_deprecated

_Given = ParamSpec("_Given")
_Object = TypeVar("_Object")
_Result = TypeVar("_Result")


def check_names(called: str, given: Iterable[str], valid: Collection[str]) -> None:
    """TypeError for the first name that is not valid."""
    for name in given:
        if name not in valid:
            raise TypeError(f"{called}() got an unexpected argument '{name}'.{suggest(name, valid)}")


def names_checked(
    init: Callable[Concatenate[_Object, _Given], None],
) -> Callable[Concatenate[_Object, _Given], None]:
    """Wraps a constructor to report unknown names under the name of the class, which may be a user's subclass."""
    valid = inspect.signature(init).parameters.keys() - {"self"}

    @functools.wraps(init)
    def checked(self: _Object, /, *args: _Given.args, **kwargs: _Given.kwargs) -> None:
        if not kwargs.keys() <= valid:
            check_names(type(self).__name__, kwargs, valid)
        init(self, *args, **kwargs)

    return checked


def keywords_checked(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Wraps a function to report unknown names as `names_checked` does."""
    valid = inspect.signature(function).parameters.keys()

    @functools.wraps(function)
    def checked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        if not kwargs.keys() <= valid:
            check_names(function.__name__, kwargs, valid)
        return function(*args, **kwargs)

    return checked


def of_signature(called: str, signature: inspect.Signature, args: Any, kwargs: Any) -> inspect.BoundArguments:
    """`signature.bind(*args, **kwargs)`, with errors that name `called`."""
    check_names(called, kwargs, signature.parameters)
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as e:
        raise TypeError(f"{called}(): {e}") from None


def with_signature_of(
    other: Callable[Concatenate[Any, _Given], None],
) -> Callable[[Callable[..., None]], Callable[Concatenate[Any, _Given], None]]:
    """Gives a constructor that forwards its arguments the signature of `other`, at run time and for type checkers."""

    def given(init: Callable[..., None]) -> Callable[Concatenate[Any, _Given], None]:
        init.__signature__ = inspect.signature(other)  # type: ignore[attr-defined]
        return init

    return given
