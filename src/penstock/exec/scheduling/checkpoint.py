# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: the position of a pipeline, as a few integers in JSON.

Random numbers are a function of (seed, operator, epoch, position), and readers know their order from a few integers, so
nothing else has to be stored. A checkpoint also names what these integers depend on: seed, sources, and the
operators that draw random numbers. Reading one executes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from ...core.errors import ArgumentValueError
from ...graph.node import Node
from ..plan import Plan

VERSION = 1
_KIND = "penstock checkpoint"


class State:
    """The state of a pipeline between two batches: the number of the next batch, the samples requested before it,
    whether a source has ended, the states of the sources, and the bad samples (`Policy.saved`)."""

    __slots__ = ("ended", "errors", "iteration", "position", "sources")

    def __init__(self, iteration: int, position: int, ended: bool, sources: Sequence[Any], errors: Any = None):
        self.iteration, self.position, self.ended, self.sources = iteration, position, ended, sources
        self.errors: dict[str, Any] = errors or {}


def describe(plan: Plan) -> dict[str, Any]:
    """What must be equal in two pipelines so that one can continue the other. Cached, as it may read the names of all
    samples."""
    if plan.described is None:
        plan.described = _described(plan)
    return plan.described


def _described(plan: Plan) -> dict[str, Any]:
    drawing = []
    for n in plan.drawing:
        seed = n.op.values.get("seed", -1)
        drawing.append(n.op.fn_name if seed in (-1, None) else f"{n.op.fn_name} seed={seed}")
    return {"seed": plan.seed, "random": drawing, "sources": [_source(plan, n) for n in plan.sources]}


def _source(plan: Plan, node: Node) -> dict[str, Any]:
    name = "" if node.name.startswith("__") else node.name
    return {"operator": node.op.fn_name, "name": name, "identity": plan.source_op(node).identity()}


def _read(content: Any) -> dict[str, Any]:
    """Parses a checkpoint; ValueError if it is not one."""
    try:
        found = json.loads(content)
    except (TypeError, ValueError) as e:
        got = f"{type(content).__name__} of length {len(content)}" if hasattr(content, "__len__") else content
        raise ArgumentValueError(
            f"checkpoint= takes what Pipeline.checkpoint() returned; this {got} is not JSON: {e}"
        ) from None
    version = found.get(_KIND) if isinstance(found, dict) else None
    if version is None:
        raise ArgumentValueError("checkpoint= takes what Pipeline.checkpoint() returned; this is other JSON")
    if version != VERSION:
        raise ArgumentValueError(
            f"the checkpoint has format {version}, this version of penstock reads format {VERSION}; it was written "
            f"by penstock {found.get('version')}"
        )
    kinds = {"seed": int, "iteration": int, "position": int, "sources": list, "random": list}
    for key, kind in kinds.items():
        if not isinstance(found.get(key), kind):
            raise ArgumentValueError(f"the checkpoint is damaged: '{key}' is {found.get(key)!r}")
    if not all(isinstance(s, dict) for s in (*found["sources"], found.get("errors", {}))):
        raise ArgumentValueError("the checkpoint is damaged: its sources and errors are not JSON objects")
    return found


class Checkpoint:
    """The content of a checkpoint, or of a list of the checkpoints of all shards."""

    def __init__(self, content: Any):
        several = isinstance(content, (list, tuple))
        if several and not content:
            raise ArgumentValueError("checkpoint= takes what Pipeline.checkpoint() returned; this is an empty list")
        self.all = [_read(c) for c in content] if several else [_read(content)]
        self.content = self.all[0]

    def texts(self) -> list[str]:
        """The checkpoints as JSON, to construct it again."""
        return [json.dumps(c) for c in self.all]

    @property
    def seed(self) -> int:
        return self.content["seed"]

    @property
    def iterator(self) -> dict[str, Any] | None:
        """The state of an iterator; None if none was saved."""
        return self.content.get("iterator")

    def restore(self, plan: Plan) -> State:
        """Restores the sources of a plan. Raises ValueError that lists the differences if the plan is of another
        pipeline."""
        ours, theirs = describe(plan), self.content
        problems = list(_differences(ours, theirs))
        for other in self.all[1:]:  # other shards may have other seeds
            problems += [p for p in _differences(ours, {**other, "seed": ours["seed"]}) if p not in problems]
        if problems:
            raise ArgumentValueError(
                "the checkpoint is of another pipeline:\n" + "\n".join(f"  {p}" for p in problems) + "\n"
                "Go on with the same sources, seed and random operators, or start anew without checkpoint="
            )
        for i, node in enumerate(plan.sources):
            states = [c["sources"][i].get("state") for c in self.all]
            if states[0] is None:
                continue  # a stream, which continues from its current position
            try:
                shards = [(s, c["seed"]) for s, c in zip(states, self.all)]
                plan.source_op(node).resume(states[0], shards if len(shards) > 1 else ())
            except (KeyError, TypeError, ValueError) as e:
                why = f"its state lacks {e}" if isinstance(e, KeyError) else str(e)
                raise ArgumentValueError(node.describe(f"the checkpoint can't be restored: {why}")) from None
        return State(theirs["iteration"], theirs["position"], bool(theirs.get("ended")), [], theirs.get("errors"))


def _differences(ours: dict[str, Any], theirs: dict[str, Any]):
    if ours["seed"] != theirs["seed"]:
        yield f"seed: {ours['seed']} here, {theirs['seed']} in the checkpoint (leave `seed` out to take that)"
    here, there = ([s.get("operator") for s in p["sources"]] for p in (ours, theirs))
    if here != there:
        yield f"sources: {_listed(here)} here, {_listed(there)} in the checkpoint"
    else:
        for a, b in zip(ours["sources"], theirs["sources"]):
            who = f"source '{a['name']}'" if a["name"] else f"source {a['operator']}"
            if a["name"] != b.get("name"):
                yield f"{who}: called '{b.get('name')}' in the checkpoint"
            mine, his = a["identity"], b.get("identity") or {}
            for key in mine.keys() | his.keys():
                if mine.get(key) == his.get(key):
                    continue
                if key == "fingerprint":
                    yield f"{who}: as many samples, but not the same ones (names or labels differ)"
                else:
                    yield f"{who}: {key} is {mine.get(key)!r} here, {his.get(key)!r} in the checkpoint"
    here, there = ours["random"], theirs["random"]
    if here != there:
        i = next((i for i, (a, b) in enumerate(zip(here, there)) if a != b), min(len(here), len(there)))
        a, b = (f"fn.{x[i]}" if i < len(x) else "none" for x in (here, there))
        yield (
            f"operators that draw random numbers: {len(here)} here, {len(there)} in the checkpoint; number {i + 1} is "
            f"{a} here, {b} in the checkpoint"
        )


def _listed(names: list[Any]) -> str:
    return ", ".join(f"fn.{n}" for n in names) or "none"


def save(plan: Plan, state: State, version: str, iterator: dict[str, Any] | None) -> bytes:
    """Returns the checkpoint of a plan whose next batch is that of `state`."""
    described = describe(plan)
    content = {_KIND: VERSION, "version": version, **described}
    content |= {"iteration": state.iteration, "position": state.position, "ended": state.ended}
    content["sources"] = [{**source, "state": its} for source, its in zip(described["sources"], state.sources)]
    if state.errors:
        content["errors"] = state.errors
    if iterator is not None:
        content["iterator"] = iterator
    try:
        return json.dumps(content, separators=(",", ":")).encode()
    except TypeError as e:
        raise TypeError(f"a source's state_dict() returned what JSON can't hold: {e}") from None


def without_state(plan: Plan) -> list[Node]:
    """The sources whose position can't be saved."""
    return [n for n in plan.sources if plan.source_op(n).saved() is None]
