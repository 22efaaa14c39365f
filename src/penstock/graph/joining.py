# SPDX-License-Identifier: Apache-2.0
"""Joins conditionals into chains: the chain before an `if`, those in its branches and the chain after it become one
chain per branch, for the samples of that branch. Nested conditionals give more than two branches."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from .node import DataNode, Edge, Node, edge_of
from .passes import Stage
from .scopes import Scope

SPLIT, MERGE = "_conditional.split", "_conditional.merge"
MOST = 4  # maximum number of branches; each is planned separately


class Alternative:
    """The nodes for the samples of one branch, in order: copies without splits and merges. `gives` are the edges of
    this branch for the outputs of the whole; `merged` are the edges that enter each merge, by merge."""

    def __init__(self, scope: Scope, nodes: list[Node], gives: list[Edge], merged: dict[int, Edge]):
        self.scope, self.nodes, self.gives, self.merged = scope, nodes, gives, merged


class Branches(Stage):
    """The chains of all branches. `outputs` are the edges that later stages read; `apart` are the equivalent separate
    stages that this replaces."""

    __slots__ = ("alternatives", "apart", "outputs")

    def __init__(self, apart: list[Stage], outputs: list[Edge], alternatives: list[Alternative]):
        super().__init__("branches", [n for s in apart for n in s.nodes])
        self.apart, self.outputs, self.alternatives = apart, outputs, alternatives


def join_branches(stages: list[Stage], outputs: list[DataNode]) -> list[Stage]:
    """Returns the stages, some of them replaced by Branches."""
    wanted = {edge_of(o) for o in outputs}
    for scopes in list(_conditionals(stages)):
        found = _Search(stages, wanted, scopes).join()
        if found is not None:
            last = max(stages.index(s) for s in found.apart)
            stages = [found if i == last else s for i, s in enumerate(stages) if i == last or s not in found.apart]
    return stages


def _once(stages: list[Stage]) -> list[Stage]:
    return list(dict.fromkeys(stages))


def _is(stage: Stage, name: str) -> bool:
    return stage.kind == "batch" and stage.nodes[0].op.fn_name == name and stage.nodes[0].device == "cpu"


def _scopes_of(merge: Node) -> tuple[Scope | None, ...]:
    return tuple(d.source.branch for d in merge.inputs[:2])


def _conditionals(stages: list[Stage]) -> Iterator[tuple[Scope, Scope]]:
    """The scopes of conditionals that are not inside a branch."""
    seen = set()
    for s in stages:
        if _is(s, MERGE) and s.nodes[0].scope is None:
            then, otherwise = _scopes_of(s.nodes[0])
            if then is not None and otherwise is not None and id(then) not in seen:
                seen.add(id(then))
                yield then, otherwise


def lineage(scope: Scope | None) -> list[Scope]:
    """The scope and its ancestors."""
    found = []
    while scope is not None:
        found.append(scope)
        scope = scope.parent
    return found


class _Search:
    """Finds the stages around a conditional that can be joined."""

    def __init__(self, stages: list[Stage], wanted: set[Edge], scopes: tuple[Scope, Scope]):
        self.stages, self.wanted, self.scopes = stages, wanted, scopes
        self.made_by = {n.number: s for s in stages for n in s.nodes}
        self.place = {id(s): i for i, s in enumerate(stages)}
        self.readers: dict[Edge, list[Stage]] = {}
        for s in stages:
            for n in s.nodes:
                for d in n.reads():
                    self.readers.setdefault(edge_of(d), []).append(s)

    def join(self) -> Branches | None:
        merges = [s for s in self.stages if _is(s, MERGE) and _scopes_of(s.nodes[0])[0] is self.scopes[0]]
        inside, splits = self._inside(merges)
        members = [*inside, *merges]
        if not all(self._only(self._outgoing(s), [*members, *splits]) for s in inside):
            return None
        behind = self._behind(merges)
        members += behind
        before = self._before(splits, members)
        members += before
        # Splits with other readers stay separate and run before.
        kept = splits
        while kept != (read_here := [s for s in kept if self._only(self._outgoing(s), [*members, *kept])]):
            kept = read_here
        made = [*members, *kept]
        members = sorted(_once(made), key=lambda s: self.place[id(s)])
        if not (behind or before) or not _joinable(members):
            return None
        return self._joined(members)

    def _inside(self, merges: list[Stage]) -> tuple[list[Stage], list[Stage]]:
        """The chains and merges inside the branches that the merges depend on, and the splits that they read."""
        inside: list[Stage] = []
        splits: list[Stage] = []
        left = [*merges]
        while left:
            stage = left.pop()
            for n in stage.nodes:
                for d in n.inputs[:1] if _is(stage, SPLIT) else n.inputs[:2] if _is(stage, MERGE) else n.inputs:
                    made = self.made_by.get(d.source.number)
                    if made is None or made is stage or made in inside or made in splits:
                        continue
                    scope = made.nodes[0].scope
                    within = any(s.holds(scope) for s in self.scopes) if scope is not None else False
                    if _is(made, SPLIT) and made.nodes[0].branch is not None:
                        splits.append(made)
                        left.append(made)
                    elif within and (made.kind == "chain" or _is(made, MERGE)):
                        inside.append(made)
                        left.append(made)
        return inside, splits

    def _outgoing(self, stage: Stage) -> list[Edge]:
        """The edges that other stages or the user read."""
        edges = [(n.number, i) for n in stage.nodes for i in range(n.n_outputs)]
        return [e for e in edges if e in self.wanted or any(s is not stage for s in self.readers.get(e, ()))]

    def _only(self, edges: list[Edge], readers: list[Stage]) -> bool:
        """Whether only `readers`, and the stage that computes them, read the edges."""
        return all(
            e not in self.wanted and all(s in readers or s is self.made_by.get(e[0]) for s in self.readers.get(e, ()))
            for e in edges
        )

    def _behind(self, merges: list[Stage]) -> list[Stage]:
        """The chains that read the merges."""
        readers = _once([s for m in merges for e in self._outgoing(m) for s in self.readers.get(e, ())])
        return [s for s in readers if s.kind == "chain" and s.nodes[0].scope is None]

    def _before(self, splits: list[Stage], members: list[Stage]) -> list[Stage]:
        """The chains whose outputs are split, if only the branches, and the chains after them, read them."""
        read = {s: self.made_by.get(s.nodes[0].inputs[0].source.number) for s in splits}
        above = {s: made for s, made in read.items() if made is not None}
        chains = _once([s for s in above.values() if s.kind == "chain" and s.nodes[0].scope is None])
        found = []
        for chain in chains:
            ours = [s for s in above if above[s] is chain or above.get(above[s]) is chain]
            if chain not in members and all(self._only(self._outgoing(s), [*splits, *members]) for s in (*ours, chain)):
                found.append(chain)
        return found

    def _leaves(self, members: list[Stage]) -> list[Scope]:
        """The innermost branches."""
        scopes: list[Scope] = []
        for s in members:
            if _is(s, MERGE):
                scopes += [b for b in _scopes_of(s.nodes[0]) if b is not None and b not in scopes]
        return [s for s in scopes if not any(other.parent is s for other in scopes)]

    def _joined(self, members: list[Stage]) -> Branches | None:
        nodes = [n for s in members for n in s.nodes]
        numbers = {n.number for n in nodes}
        outputs = [
            (n.number, i)
            for n in nodes
            for i in range(n.n_outputs)
            if (n.number, i) in self.wanted or any(r not in members for r in self.readers.get((n.number, i), ()))
        ]
        # Stages in between must not depend on outputs that are now computed later.
        last = max(self.place[id(s)] for s in members)
        if any(self.place[id(r)] < last for e in outputs for r in self.readers.get(e, ()) if r not in members):
            return None
        # The conditions must be known before.
        conditions = [d for n in nodes for d in _condition(n)]
        leaves = self._leaves(members)
        if len(leaves) > MOST or any(d.source.number in numbers for d in conditions):
            return None
        alternatives = [_alternative(nodes, leaf, outputs) for leaf in leaves]
        return None if None in alternatives else Branches(members, outputs, [a for a in alternatives if a is not None])


def _condition(node: Node) -> tuple[DataNode, ...]:
    return node.inputs[1:] if node.op.fn_name == SPLIT else node.inputs[2:] if node.op.fn_name == MERGE else ()


def _joinable(members: list[Stage]) -> bool:
    nodes = (n for s in members if s.kind == "chain" for n in s.nodes)
    return not any(n.op.mixes_samples or n.op.aliases or n.op.shortens is not None for n in nodes)


def _alternative(nodes: list[Node], leaf: Scope, outputs: list[Edge]) -> Alternative | None:
    """The chain of one branch; None if it needs values computed inside the conditional before it can be planned."""
    around = lineage(leaf)
    same: dict[Edge, DataNode] = {}
    merged: dict[int, Edge] = {}
    own: list[Node] = []
    for n in nodes:
        if n.op.fn_name == SPLIT:
            if n.branch in around:
                same[n.number, 0] = same.get(edge_of(n.inputs[0]), n.inputs[0])
        elif n.op.fn_name == MERGE:
            branch = next((k for k, s in enumerate(_scopes_of(n)) if s in around), None)
            if branch is not None:
                d = n.inputs[branch]
                same[n.number, 0] = same.get(edge_of(d), d)
                merged[n.number] = edge_of(same[n.number, 0])
        elif n.scope is None or n.scope in around:
            own.append(copy.copy(n))
            own[-1].inputs = tuple(same.get(edge_of(d), d) for d in n.inputs)
    gives = [edge_of(same[e]) if e in same else e for e in outputs]
    own = _reached(own, gives)
    inner = {n.number for n in nodes}
    made = {n.number for n in own}
    known = all(d.source.number not in inner for n in own for d in n.arg_nodes())
    known &= all(n.inputs[i].source.number not in made for n in own for i in n.op.ahead(len(n.inputs)))
    known &= all(d.source.number in made or d.source.number not in inner for n in own for d in n.inputs)
    if not own or not known or any(e[0] not in made for e in gives) or len(set(gives)) < len(gives):
        return None
    return Alternative(leaf, own, gives, merged)


def _reached(nodes: list[Node], gives: list[Edge]) -> list[Node]:
    """The nodes that the outputs depend on."""
    needed = {number for number, _ in gives}
    for n in reversed(nodes):
        if n.number in needed:
            needed.update(d.source.number for d in n.inputs)
    return [n for n in nodes if n.number in needed]
