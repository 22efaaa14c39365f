# SPDX-License-Identifier: Apache-2.0
"""Conditionals inside of chains: the chain before an `if`, those in its branches and the chain behind it become a chain
per branch, through which the samples of the branch go at a time."""

from __future__ import annotations

import copy
from collections.abc import Iterator

from .node import DataNode, Node
from .passes import Stage
from .scopes import Scope

Edge = tuple[int, int]
SPLIT, MERGE = "_conditional.split", "_conditional.merge"


class Alternative:
    """What the samples of one branch go through: `nodes` in order, copies whose inputs know of no split or merge.
    `gives` are the edges that the outputs of the whole have here, `merged` those that are merged."""

    def __init__(self, scope: Scope, nodes: list[Node], gives: list[Edge], merged: list[Edge]):
        self.scope, self.nodes, self.gives, self.merged = scope, nodes, gives, merged


class Branches(Stage):
    """Chains of both branches. `outputs` are the edges that later stages read, `apart` the stages in place of which
    this one is, which do the same."""

    __slots__ = ("alternatives", "apart", "outputs")

    def __init__(self, apart: list[Stage], outputs: list[Edge], alternatives: list[Alternative]):
        super().__init__("branches", [n for s in apart for n in s.nodes])
        self.apart, self.outputs, self.alternatives = apart, outputs, alternatives


def join_branches(stages: list[Stage], outputs: list[DataNode]) -> list[Stage]:
    """The stages, where some are replaced by Branches."""
    wanted = {(o.source.number, o.index) for o in outputs}
    for scopes in list(_conditionals(stages)):
        found = _Search(stages, wanted, scopes).join()
        if found is not None:
            last = max(stages.index(s) for s in found.apart)
            stages = [found if i == last else s for i, s in enumerate(stages) if i == last or s not in found.apart]
    return stages


def _is(stage: Stage, name: str) -> bool:
    return stage.kind == "batch" and stage.nodes[0].op.fn_name == name and stage.nodes[0].device == "cpu"


def _conditionals(stages: list[Stage]) -> Iterator[tuple[Scope, Scope]]:
    """The scopes of those that are in no branch themselves."""
    seen = set()
    for s in stages:
        if _is(s, MERGE) and s.nodes[0].scope is None:
            then, otherwise = (d.source.branch for d in s.nodes[0].inputs[:2])
            if then is not None and otherwise is not None and id(then) not in seen:
                seen.add(id(then))
                yield then, otherwise


class _Search:
    """Looks for the stages around a conditional that may be joined."""

    def __init__(self, stages: list[Stage], wanted: set[Edge], scopes: tuple[Scope, Scope]):
        self.stages, self.wanted, self.scopes = stages, wanted, scopes
        self.made_by = {n.number: s for s in stages for n in s.nodes}
        self.place = {id(s): i for i, s in enumerate(stages)}
        self.readers: dict[Edge, list[Stage]] = {}
        for s in stages:
            for n in s.nodes:
                for d in (*n.inputs, *n.arg_nodes()):
                    self.readers.setdefault((d.source.number, d.index), []).append(s)

    def join(self) -> Branches | None:
        merges = [s for s in self.stages if _is(s, MERGE) and s.nodes[0].inputs[0].source.branch is self.scopes[0]]
        inside: list[Stage] = []
        splits: list[Stage] = []
        for m in merges:
            for d in m.nodes[0].inputs[:2]:
                made = self.made_by[d.source.number]
                if _is(made, SPLIT):
                    splits.append(made)
                elif made.kind == "chain" and made.nodes[0].scope in self.scopes:
                    inside.append(made)
                else:
                    return None
        inside = _once(inside)
        if not all(self._only(self._outgoing(s), merges) for s in inside):
            return None
        members = [*inside, *merges]
        behind = self._behind(merges)
        if behind is not None:
            members.append(behind)
        for s in inside:
            splits += [p for n in s.nodes for d in n.inputs if _is(p := self.made_by[d.source.number], SPLIT)]
        splits = [s for s in _once(splits) if s.nodes[0].branch in self.scopes]
        before = self._before(splits, members)
        if before is not None:
            members += [before, *[s for s in splits if self.made_by[s.nodes[0].inputs[0].source.number] is before]]
        members = sorted(_once(members), key=lambda s: self.place[id(s)])
        if (behind is None and before is None) or not _joinable(members):
            return None
        return self._joined(members)

    def _outgoing(self, stage: Stage) -> list[Edge]:
        """The edges that others read."""
        edges = [(n.number, i) for n in stage.nodes for i in range(len(n.outputs))]
        return [e for e in edges if e in self.wanted or any(s is not stage for s in self.readers.get(e, ()))]

    def _only(self, edges: list[Edge], readers: list[Stage], also: Stage | None = None) -> bool:
        """Whether nobody but `readers`, and the stage that makes it, reads any of the edges."""
        allowed = [*readers, also]
        return all(
            e not in self.wanted and all(s in allowed or s is self.made_by[e[0]] for s in self.readers.get(e, ()))
            for e in edges
        )

    def _behind(self, merges: list[Stage]) -> Stage | None:
        """The chain that reads all that is merged, if nobody else does."""
        readers = _once([s for m in merges for e in self._outgoing(m) for s in self.readers.get(e, ())])
        if len(readers) != 1 or readers[0].kind != "chain" or readers[0].nodes[0].scope is not None:
            return None
        return readers[0] if all(self._only(self._outgoing(m), readers) for m in merges) else None

    def _before(self, splits: list[Stage], members: list[Stage]) -> Stage | None:
        """The chain that makes what is split, if nobody reads it but the branches, and the chain behind."""
        made = [self.made_by[s.nodes[0].inputs[0].source.number] for s in splits]
        chains = _once([s for s in made if s.kind == "chain" and s.nodes[0].scope is None])
        if len(chains) != 1 or chains[0] in members:
            return None
        splits = [s for s, m in zip(splits, made) if m is chains[0]]
        if not all(self._only(self._outgoing(s), members) for s in splits):
            return None
        return chains[0] if self._only(self._outgoing(chains[0]), [*splits, *members]) else None

    def _joined(self, members: list[Stage]) -> Branches | None:
        numbers = {n.number for s in members for n in s.nodes}
        outputs = [
            (n.number, i)
            for s in members
            for n in s.nodes
            for i in range(len(n.outputs))
            if (n.number, i) in self.wanted or any(r not in members for r in self.readers.get((n.number, i), ()))
        ]
        # Stages in between may not wait for what is made later now.
        last = max(self.place[id(s)] for s in members)
        if any(self.place[id(r)] < last for e in outputs for r in self.readers.get(e, ()) if r not in members):
            return None
        alternatives = []
        for k, scope in enumerate(self.scopes):
            same: dict[Edge, DataNode] = {}
            nodes: list[Node] = []
            for n in (n for s in members for n in s.nodes):
                if n.op.fn_name in (SPLIT, MERGE):
                    if n.op.fn_name == MERGE or n.branch is scope:
                        d = n.inputs[k if n.op.fn_name == MERGE else 0]
                        same[n.number, 0] = same.get((d.source.number, d.index), d)
                elif n.scope is None or n.scope is scope:
                    own = copy.copy(n)
                    own.inputs = tuple(same.get((d.source.number, d.index), d) for d in n.inputs)
                    nodes.append(own)
            gives = [_edge(same[e]) if e in same else e for e in outputs]
            merged = [_edge(same[n.number, 0]) for s in members for n in s.nodes if n.op.fn_name == MERGE]
            nodes = _reached(nodes, gives)
            made = {n.number for n in nodes}
            known = all(d.source.number not in numbers for n in nodes for d in n.arg_nodes())
            known &= all(n.inputs[i].source.number not in made for n in nodes for i in n.op.peeks if i < len(n.inputs))
            if not nodes or not known or any(e[0] not in made for e in gives) or len(set(gives)) < len(gives):
                return None
            alternatives.append(Alternative(scope, nodes, gives, merged))
        return Branches(members, outputs, alternatives)


def _joinable(members: list[Stage]) -> bool:
    nodes = [n for s in members for n in s.nodes if s.kind == "chain"]
    return not any(n.op.mixes_samples or n.op.aliases for n in nodes)


def _once(stages: list[Stage]) -> list[Stage]:
    return list(dict.fromkeys(stages))


def _edge(d: DataNode) -> Edge:
    return d.source.number, d.index


def _reached(nodes: list[Node], gives: list[Edge]) -> list[Node]:
    """Those that the outputs depend on."""
    needed = {number for number, _ in gives}
    for n in reversed(nodes):
        if n.number in needed:
            needed.update(d.source.number for d in n.inputs)
    return [n for n in nodes if n.number in needed]
