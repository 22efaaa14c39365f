# SPDX-License-Identifier: Apache-2.0
"""Rewrites functions with `return` inside an `if` to have one `return` at the end."""

from __future__ import annotations

import ast
import copy

RETURNED = "_penstock_return_"
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
LOOPS = (ast.For, ast.AsyncFor, ast.While)


def jumps(node: ast.If) -> str:
    """The statement that leaves a branch of an `if`: "return", "break", "continue", or ""."""

    def find(node: ast.AST, in_loop: bool) -> str:
        if isinstance(node, ast.Return):
            return "return"
        if isinstance(node, (ast.Break, ast.Continue)) and not in_loop:
            return type(node).__name__.lower()
        if isinstance(node, FUNCTIONS):
            return ""
        return next(filter(None, (find(c, in_loop or isinstance(node, LOOPS)) for c in ast.iter_child_nodes(node))), "")

    return next(filter(None, (find(s, False) for s in (*node.body, *node.orelse))), "")


def _returns(statement: ast.stmt) -> bool:
    """Whether an `if` has a `return` that can be rewritten: directly in a branch, not in a loop, `with` or `try`."""
    if not isinstance(statement, ast.If):
        return False
    return any(isinstance(s, ast.Return) or _returns(s) for s in (*statement.body, *statement.orelse))


def _always_returns(body: list[ast.stmt]) -> bool:
    if not body:
        return False
    last = body[-1]
    if isinstance(last, (ast.Return, ast.Raise)):
        return True
    return isinstance(last, ast.If) and _always_returns(last.body) and _always_returns(last.orelse)


def lower_returns(body: list[ast.stmt]) -> list[ast.stmt]:
    """Returns the body with one `return`, if it has any inside an `if`."""
    if not any(_returns(s) for s in body):
        return body
    lowered = _lower(body)
    last = body[-1]
    value = ast.copy_location(ast.Return(ast.Name(RETURNED, ast.Load())), last)
    return [*lowered, ast.fix_missing_locations(value)]


def _lower(body: list[ast.stmt]) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Return):
            value = statement.value or ast.Constant(None)
            out.append(_assign(value, statement))
            return out  # the rest is unreachable
        if isinstance(statement, ast.If) and _returns(statement):
            rest = body[i + 1 :]
            # The rest moves into the branches that continue; if both do, each gets a copy.
            first, second = (
                b if _always_returns(b) else [*b, *copy.deepcopy(rest)] for b in (statement.body, statement.orelse)
            )
            new = ast.If(statement.test, _lower(first), _lower(second))
            out.append(ast.copy_location(new, statement))
            return out
        out.append(statement)
    if not out or not isinstance(out[-1], ast.Raise):
        out.append(_assign(ast.Constant(None), body[-1] if body else None))
    return out


def _assign(value: ast.expr, place: ast.stmt | None) -> ast.stmt:
    node = ast.Assign([ast.Name(RETURNED, ast.Store())], value)
    if place is not None:
        ast.copy_location(node, place)
        ast.fix_missing_locations(node)
    return node
