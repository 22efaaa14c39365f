# SPDX-License-Identifier: Apache-2.0
"""The AST transformation for conditionals.py.

The user's statements keep their order. An `if` becomes

    c = if_(test)
    if c.then(names, places):
        with c: <first branch>
    <variables of the first branch get their old values back, if the test is data>
    if c.otherwise():
        with c: <second branch>
    <variables of both branches are merged, if the test is data>

A `return` inside an `if` becomes an assignment, and the statements after the `if` move into the branch that continues;
so does a `continue` in a loop (continues.py).
"""

from __future__ import annotations

import ast
from typing import Any

from .continues import CONTINUED, lower_continues
from .returns import jumps, lower_returns

NAME = "_penstock_"  # the name of branching.py's functions in converted code
_COMPARISONS = {ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne"}
_COMPARISONS |= {ast.Is: "is", ast.IsNot: "isnot", ast.In: "in", ast.NotIn: "notin"}


class Converter(ast.NodeTransformer):
    """Replaces conditionals; `changed` says whether there were any."""

    def __init__(self, owner: str):
        self.owner = owner.lstrip("_")
        self.changed = False
        self.count = 0
        self.loops = 0

    def function(self, node: Any) -> Any:
        """Converts the function, and removes decorators, defaults and annotations, which are already evaluated."""
        a = node.args
        a.defaults = [ast.Constant(None) for _ in a.defaults]
        a.kw_defaults = [d and ast.Constant(None) for d in a.kw_defaults]
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if arg is not None:
                arg.annotation = None
        if isinstance(node, ast.Lambda):
            node.body = self.visit(node.body)
            return node
        node.decorator_list, node.returns = [], None
        return self._body_of(node)

    def _body_of(self, node: Any) -> Any:
        node.body = lower_returns(node.body)
        node.body = self._block(node.body)
        return node

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for statement in body:
            new = self.visit(statement)
            out += new if isinstance(new, list) else [new]
        return out

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        if any(getattr(d, "attr", getattr(d, "id", "")) == "do_not_convert" for d in node.decorator_list):
            return node
        if any(isinstance(n, (ast.Yield, ast.YieldFrom)) for n in _own(node)):
            return node
        node.args.defaults = [self.visit(d) for d in node.args.defaults]
        node.args.kw_defaults = [d and self.visit(d) for d in node.args.kw_defaults]
        return self._body_of(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> Any:
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> Any:
        owner, self.owner = self.owner, node.name.lstrip("_")
        node.body = [self.visit(n) if isinstance(n, ast.FunctionDef) else n for n in node.body]
        self.owner = owner
        return node

    # Names __x inside a class stand for _Class__x, but the compiler does not know the class here.

    def _mangled(self, name: str) -> str:
        private = self.owner and name.startswith("__") and not name.endswith("__")
        return f"_{self.owner}{name}" if private else name

    def visit_Name(self, node: ast.Name) -> Any:
        node.id = self._mangled(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        node.attr = self._mangled(node.attr)
        return self.generic_visit(node)

    # Decisions

    def _call(self, function: str, *arguments: ast.expr, at: ast.AST) -> ast.expr:
        self.changed = True
        return _at(ast.Call(_attribute(function), list(arguments), []), at)

    def visit_If(self, node: ast.If) -> Any:
        self.changed = True
        self.count += 1
        name = f"{NAME}{self.count}"
        declared = {n for s in ast.walk(node) if isinstance(s, ast.Global) for n in s.names}
        first, second = (sorted({self._mangled(n) for n in assigned(b)} - declared) for b in (node.body, node.orelse))
        both = sorted({*first, *second})
        leaves = jumps(node)
        test = self.visit(node.test)
        body, orelse = self._block(node.body), self._block(node.orelse)
        stores = sorted(stored(node) | {n for n in declared if n in assigned([*node.body, *node.orelse])})
        out: list[ast.stmt] = [
            _assign(name, self._call("if_", test, ast.Constant(leaves), at=node.test)),
            ast.If(_method(name, "then", _strings(both), _strings(stores)), [_with(name, body)], []),
        ]
        for n in first:
            remove = ast.If(_method(name, "removes", ast.Constant(n)), [ast.Delete([ast.Name(n, ast.Del())])], [])
            out.append(_set(name, n, "restores", "before", [remove]))
        out.append(ast.If(_method(name, "otherwise"), [_with(name, orelse)], []))
        out += [_set(name, n, "merges", "merged", []) for n in both]
        return [_at(s, node) for s in out]

    def visit_For(self, node: ast.For) -> Any:
        self.loops += 1
        node.body = lower_continues(node.body, f"{CONTINUED}{self.loops}")
        return self.generic_visit(node)

    visit_AsyncFor = visit_While = visit_For  # type: ignore[assignment]

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        if _binds(node):
            return self.generic_visit(node)
        values = [self.visit(v) for v in node.values]
        function = "and_" if isinstance(node.op, ast.And) else "or_"
        result = values[0]
        for value in values[1:]:
            result = self._call(function, result, _later(value), at=node)
        return result

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        operand = self.visit(node.operand)
        if isinstance(node.op, ast.Not):
            return self._call("not_", operand, at=node)
        node.operand = operand
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        if _binds(node):
            return self.generic_visit(node)
        test, body, orelse = (self.visit(n) for n in (node.test, node.body, node.orelse))
        return self._call("if_else", test, _later(body), _later(orelse), at=node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        if len(node.ops) < 2 or _binds(node):
            return self.generic_visit(node)
        arguments = [self.visit(node.left)]
        for op, value in zip(node.ops, node.comparators):
            arguments += [ast.Constant(_COMPARISONS[type(op)]), _later(self.visit(value))]
        return self._call("compare", *arguments, at=node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "super":
            return node
        node.func = self._call("call", node.func, at=node.func)
        return node


def _own(function: ast.AST):
    """The nodes in a function, excluding those in nested functions."""
    for child in ast.iter_child_nodes(function):
        yield child
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            yield from _own(child)


def _binds(node: ast.AST) -> bool:
    """Whether an expression assigns, awaits or yields, which is not possible inside a lambda."""
    return any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


def assigned(body: list[ast.stmt]) -> set[str]:
    """The names that statements assign in their function."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names.add(node.name)
            return
        if isinstance(node, ast.Lambda):
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            names.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update((a.asname or a.name).split(".")[0] for a in node.names)
        elif isinstance(node, ast.ExceptHandler) and node.name:
            names.add(node.name)
        elif isinstance(node, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
            names.update(n.target.id for n in ast.walk(node) if isinstance(n, ast.NamedExpr))
            return
        for child in ast.iter_child_nodes(node):
            visit(child)

    for statement in body:
        visit(statement)
    return names


def stored(node: ast.AST) -> set[str]:
    """The places assigned in statements: ".name" for an attribute, "[]" for an item of anything."""
    places = set()
    for n in ast.walk(node):
        if isinstance(n, (ast.Attribute, ast.Subscript)) and isinstance(n.ctx, (ast.Store, ast.Del)):
            places.add(f".{n.attr}" if isinstance(n, ast.Attribute) else "[]")
    return places


def _strings(values: list[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(v) for v in values], ast.Load())


def _at(node: Any, place: ast.AST) -> Any:
    """Gives new nodes the line of the user's code that they stand for."""
    for n in ast.walk(node):
        if "lineno" in n._attributes and not hasattr(n, "lineno"):
            ast.copy_location(n, place)
    return node


def _attribute(name: str) -> ast.expr:
    return ast.Attribute(ast.Name(NAME, ast.Load()), name, ast.Load())


def _method(variable: str, name: str, *arguments: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name(variable, ast.Load()), name, ast.Load()), list(arguments), [])


def _assign(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _set(variable: str, name: str, asks: str, gives: str, otherwise: list[ast.stmt]) -> ast.stmt:
    value = _assign(name, _method(variable, gives, ast.Constant(name)))
    return ast.If(_method(variable, asks, ast.Constant(name)), [value], otherwise)


def _with(variable: str, body: list[ast.stmt]) -> ast.stmt:
    return ast.With([ast.withitem(ast.Name(variable, ast.Load()), None)], body or [ast.Pass()])


def _later(value: ast.expr) -> ast.expr:
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return _at(ast.Lambda(arguments, value), value)
