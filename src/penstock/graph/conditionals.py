# SPDX-License-Identifier: Apache-2.0
"""Rewrites functions so that `if`, `and`, `or`, `not`, `x if c else y` and `a < b < c` also work on data.

The source of the function is parsed, each of these is replaced by calls of branching.py, and the result is compiled
with the original line numbers. Functions that it calls are converted when called; libraries, sources and other
functions that are only passed as arguments are not.
"""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import linecache
import types
from typing import Any

from . import branching
from .branching import MARK
from .libraries import is_library, is_standard_file
from .rewriting import NAME, Converter

_FUTURE = functools.reduce(int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names))


class NotConvertible(Exception):
    """The function has no source text, or is of a kind that can't be converted."""


class _Runtime:
    """The object that converted code knows as `NAME`."""

    if_ = staticmethod(branching.If)
    if_else = staticmethod(branching.if_else)
    and_ = staticmethod(branching.and_)
    or_ = staticmethod(branching.or_)
    not_ = staticmethod(branching.not_)
    compare = staticmethod(branching.compare)

    @staticmethod
    def call(function: Any) -> Any:
        """The converted function to call, or the function itself."""
        try:
            return converted_call(function)
        except NotConvertible:
            return function


def converted_pipeline(function: Any) -> Any:
    """Converts a function that defines a pipeline, from whatever module."""
    is_plain = isinstance(function, types.FunctionType) and not hasattr(function, MARK)
    return convert(function) if is_plain else converted_call(function)


def converted_call(function: Any) -> Any:
    """Converts a user's function; returns others unchanged."""
    if isinstance(function, types.FunctionType):
        return function if _is_foreign(function) else convert(function)
    if isinstance(function, types.MethodType) and isinstance(function.__func__, types.FunctionType):
        target = function.__func__
        return function if _is_foreign(target) else types.MethodType(convert(target), function.__self__)
    if isinstance(function, functools.partial):
        inner = converted_call(function.func)
        return function if inner is function.func else functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, (type, types.BuiltinFunctionType)):
        return function
    call = getattr(type(function), "__call__", None)  # noqa: B004  of the class, as calls look it up
    if isinstance(call, types.FunctionType) and not _is_foreign(call):
        return types.MethodType(convert(call), function)
    return function


def _is_foreign(function: types.FunctionType) -> bool:
    """Whether a function is not part of the user's program, or must not be converted."""
    code = function.__code__
    if hasattr(function, MARK) or NAME in code.co_freevars:
        return True
    is_generator = code.co_flags & (0x20 | 0x80 | 0x200)
    return bool(is_library(function.__module__) or is_generator or is_standard_file(code.co_filename))


# Functions -----------------------------------------------------------------------------------------------------------

_CODES: dict[types.CodeType, types.CodeType | None] = {}


def convert(function: types.FunctionType) -> types.FunctionType:
    """Converts the conditionals of a function. NotConvertible if its source can't be found."""
    code = function.__code__
    if code not in _CODES:
        _CODES[code] = _converted_code(function)
    new_code = _CODES[code]
    if new_code is None:  # it has nothing to convert
        return function
    cells = dict(zip(code.co_freevars, function.__closure__ or ()))
    cells[NAME] = types.CellType(_Runtime)
    closure = tuple(cells[name] for name in new_code.co_freevars)
    new = types.FunctionType(new_code, function.__globals__, function.__name__, function.__defaults__, closure)
    functools.update_wrapper(new, function)
    new.__kwdefaults__ = function.__kwdefaults__
    return new


def _converted_code(function: types.FunctionType) -> types.CodeType | None:
    code = function.__code__
    node, owner = _find(code)
    converter = Converter(owner)
    node = converter.function(copy.deepcopy(node))
    if not converter.changed:
        return None
    names = [*code.co_freevars, NAME]
    arguments = ast.arguments([], [ast.arg(n) for n in names], None, [], [], None, [])
    inner: list[ast.stmt]
    if isinstance(node, ast.Lambda):
        inner = [ast.Return(node)]
    else:
        node.name = f"{NAME}made"  # its own name would hide the name that it calls itself by
        inner = [node, ast.Return(ast.Name(node.name, ast.Load()))]
    maker = ast.FunctionDef(name="make", args=arguments, body=inner, decorator_list=[], returns=None)
    if hasattr(ast, "TypeAlias"):  # Python 3.12
        maker.type_params = []  # type: ignore[attr-defined]
    module = ast.fix_missing_locations(ast.Module([maker], []))
    scope: dict[str, Any] = {}
    exec(compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, True), scope)
    made: types.CodeType = scope["make"](*names).__code__
    if hasattr(code, "co_qualname"):  # Python 3.11
        return made.replace(co_name=code.co_name, co_qualname=code.co_qualname)  # type: ignore[call-arg]
    return made.replace(co_name=code.co_name)


@functools.lru_cache(maxsize=64)
def _parsed(file: str, text: str) -> ast.Module:
    return ast.parse(text, file)


def _find(code: types.CodeType) -> tuple[Any, str]:
    """The definition of a function in its file, and the name of its class."""
    text = "".join(linecache.getlines(code.co_filename))
    if not text:
        raise NotConvertible(f"the text of '{code.co_name}' can't be found ({code.co_filename})")
    try:
        tree = _parsed(code.co_filename, text)
    except SyntaxError as e:
        raise NotConvertible(f"the text of '{code.co_name}' can't be parsed: {e}") from None
    found: list[tuple[Any, str]] = []

    def visit(node: ast.AST, owner: str) -> None:
        for child in ast.iter_child_nodes(node):
            if _begins(child) == code.co_firstlineno:
                if isinstance(child, ast.FunctionDef) and child.name == code.co_name:
                    found.append((child, owner))
                elif isinstance(child, ast.Lambda) and code.co_name == "<lambda>" and _same_arguments(child, code):
                    found.append((child, owner))
            visit(child, child.name if isinstance(child, ast.ClassDef) else owner)

    visit(tree, "")
    if len(found) != 1:
        why = "was changed since it was imported" if not found else "has several functions of that name in one line"
        where = f"{code.co_filename}, line {code.co_firstlineno}"
        raise NotConvertible(f"'{code.co_name}' is ambiguous in {where}: it {why}")
    return found[0]


def _begins(node: ast.AST) -> int:
    """The line that Python records as the first of a function: that of its first decorator, if any."""
    decorators = getattr(node, "decorator_list", None)
    return min([d.lineno for d in decorators or ()] + [getattr(node, "lineno", -1)])


def _same_arguments(node: ast.Lambda, code: types.CodeType) -> bool:
    a = node.args
    names = [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
    return tuple(names) == code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
