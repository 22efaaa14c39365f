# SPDX-License-Identifier: Apache-2.0
"""Rewrites the bodies of loops that have `continue` inside an `if`, `with` or `try`, so that they run to their end: the
statements after it move into the branch that does not continue, or into an `if not` of a variable that `continue` sets.
With a condition on data, both branches are defined, and neither can leave the loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from .returns import FUNCTIONS, LOOPS

CONTINUED = "_penstock_continue_"
_TRIES = (ast.Try, getattr(ast, "TryStar", ast.Try))  # Python 3.11 has the latter


def lower_continues(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    """Returns the body of a loop without `continue`, if it has any inside another statement. `flag`: the name of the
    variable that says whether the iteration was continued."""
    if not any(_continues(s) for s in body if not isinstance(s, ast.Continue)):
        return body
    return [_flag_set(flag, False, body[0]), *_lower(body, flag)]


def _blocks(statement: ast.stmt) -> Iterator[tuple[ast.AST, str]]:
    """The blocks of a statement whose `continue` is for the loop around it, as the node and the attribute's name."""
    if isinstance(statement, FUNCTIONS):
        return
    for name in ("orelse",) if isinstance(statement, LOOPS) else ("body", "orelse", "finalbody"):
        if hasattr(statement, name):
            yield statement, name
    for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield part, "body"


def _continues(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Continue):
        return True
    return any(_continues(s) for node, name in _blocks(statement) for s in getattr(node, name))


def _always_continues(body: list[ast.stmt]) -> bool:
    return bool(body) and isinstance(body[-1], ast.Continue)


def _lower(body: list[ast.stmt], flag: str) -> list[ast.stmt]:
    out: list[ast.stmt] = []
    for i, statement in enumerate(body):
        if isinstance(statement, ast.Continue):
            return [*out, _flag_set(flag, True, statement)]  # the rest is unreachable
        out.append(statement)
        if not _continues(statement):
            continue
        rest = body[i + 1 :]
        if isinstance(statement, ast.If):
            # As in plain Python, a list to which both paths append one item then gets one, not an item of each.
            if _always_continues(statement.body):
                statement.orelse, rest = [*statement.orelse, *rest], []
            elif _always_continues(statement.orelse):
                statement.body, rest = [*statement.body, *rest], []
        if isinstance(statement, _TRIES) and statement.orelse and any(_continues(s) for s in statement.body):
            statement.orelse = [_unless(flag, statement.orelse)]
        for node, name in _blocks(statement):
            setattr(node, name, _lower(getattr(node, name), flag))
        if rest:
            out.append(_unless(flag, _lower(rest, flag)))
        return out
    return out


def _flag_set(flag: str, value: bool, place: ast.stmt) -> ast.stmt:
    return _at(ast.Assign([ast.Name(flag, ast.Store())], ast.Constant(value)), place)


def _unless(flag: str, body: list[ast.stmt]) -> ast.stmt:
    return _at(ast.If(ast.UnaryOp(ast.Not(), ast.Name(flag, ast.Load())), body, []), body[0])


def _at(node: ast.stmt, place: ast.stmt) -> ast.stmt:
    return ast.fix_missing_locations(ast.copy_location(node, place))
