# SPDX-License-Identifier: Apache-2.0
"""Positions of readers and generators, saved in one file, from which a program can continue."""

from __future__ import annotations

import json
import os
import re
import string
from typing import Any, NamedTuple

from ...core.new_files import replacing

VERSION = 2
_AUTOMATIC = "__op_"


class _State(NamedTuple):
    value: Any
    type_name: str | None
    dirty: bool  # not yet restored to its object


class Checkpoint:
    """The states of readers and random number generators, each under a name.

    Objects are registered; `collect` gets their states and `save` writes them. In a program that continues, call `load`
    first; `register` then restores the state of each object.

    >>> import os, tempfile
    >>> from penstock.experimental import dynamic as ndd
    >>> rng, path = ndd.random.RNG(42), os.path.join(tempfile.mkdtemp(), "run_{seq:04d}.json")
    >>> saved = ndd.checkpoint.Checkpoint()
    >>> saved.register(rng, "rng")
    'rng'
    >>> saved.collect()
    >>> os.path.basename(saved.save(path))
    'run_0000.json'
    >>> loaded, other = ndd.checkpoint.Checkpoint(), ndd.random.RNG()
    >>> _ = loaded.load(path), loaded.register(other, "rng")
    >>> other() == rng()
    True
    """

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Removes all objects and states."""
        self._ops: dict[str, Any] = {}
        self._states: dict[str, _State] = {}
        self._complete = self._loaded = False
        self._count = 0

    @property
    def is_complete(self) -> bool:
        """Whether the states are from `collect`."""
        return self._complete

    @property
    def is_loaded(self) -> bool:
        """Whether the states were loaded."""
        return self._loaded

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the registered objects."""
        return tuple(self._ops)

    def __len__(self) -> int:
        return len(self._ops)

    def register(self, op: Any, name: str | None = None) -> str:
        """Adds an object with `get_state` and `set_state`: a reader or a `random.RNG`. If a state was loaded for it, it
        is restored.

        Parameters
        ----------
        op
            The object.
        name
            By default a number, in the order of the calls. Replaces another object with the same name.

        Returns
        -------
        The name.
        """
        if not (hasattr(op, "get_state") and hasattr(op, "set_state")):
            raise TypeError(f"a reader or a random.RNG is registered; {type(op).__name__} has no state")
        if name is None:
            for known, other in self._ops.items():
                if other is op:
                    return known
            name = f"{_AUTOMATIC}{self._count}"
            self._count += 1
        elif name.startswith(_AUTOMATIC):
            raise ValueError(f"names that begin with '{_AUTOMATIC}' are given by the checkpoint; got {name!r}")
        if self._loaded and name not in self._states:
            raise KeyError(
                f"the checkpoint that was loaded has no state for '{name}'; it has {', '.join(self._states) or 'none'}"
            )
        self._ops[name] = op
        self._apply(name)
        return name

    def _apply(self, name: str) -> None:
        state = self._states.get(name)
        if state is None or not state.dirty:
            return
        kind = type(self._ops[name]).__name__
        if state.type_name is not None and state.type_name.rpartition(".")[2] != kind:
            raise TypeError(f"the state of '{name}' is that of a {state.type_name}, the object is a {kind}")
        self._ops[name].set_state(state.value)
        self._states[name] = state._replace(dirty=False)

    def get_state(self, name: str) -> Any:
        """Returns the state of a name; None if not collected yet. Raises KeyError if the name is not registered."""
        if name not in self._ops:
            raise KeyError(f"nothing is registered as '{name}'; there is {', '.join(self._ops) or 'nothing'}")
        state = self._states.get(name)
        return None if state is None else state.value

    def set_state(self, name: str, value: Any, op_type: Any = None) -> None:
        """Sets the state of a name, for `restore` or `register`. If `op_type` is given, a class or its name, the object
        must be of that class."""
        if self._complete and name not in self._ops:
            raise KeyError(f"nothing is registered as '{name}'; there is {', '.join(self._ops) or 'nothing'}")
        if op_type is not None and not isinstance(op_type, (str, type)):
            raise TypeError(f"op_type is a class or its name; got {op_type!r}")
        kind = op_type.__name__ if isinstance(op_type, type) else op_type
        self._states[name] = _State(value, kind, True)

    def collect(self) -> None:
        """Gets the states of all objects."""
        self._unregistered("collect")
        self._states = {n: _State(op.get_state(), type(op).__name__, False) for n, op in self._ops.items()}
        self._complete, self._loaded = True, False

    def restore(self) -> None:
        """Restores the states of all objects."""
        self._unregistered("restore")
        missing = [n for n in self._ops if n not in self._states]
        if self._states and missing:
            raise RuntimeError(f"the checkpoint has no state for {', '.join(missing)}")
        for name in self._ops:
            self._apply(name)

    def _unregistered(self, what: str) -> None:
        left = [n for n in self._states if n not in self._ops]
        if left:
            raise RuntimeError(f"{what}: the checkpoint has states for {', '.join(left)}, which are not registered")

    def serialize(self) -> str:
        """The states as JSON."""
        if not self._states:
            raise RuntimeError("the checkpoint is empty; call collect() first")
        states = {n: {"state": str(s.value), "type": s.type_name} for n, s in self._states.items()}
        return json.dumps({"version": VERSION, "states": states})

    def deserialize(self, data: str) -> None:
        """Loads states from the result of `serialize`."""
        given = json.loads(data)
        if not isinstance(given, dict) or not isinstance(given.get("states"), dict) or "version" not in given:
            raise ValueError("this is not a checkpoint")
        if given["version"] != VERSION:
            raise ValueError(f"the checkpoint is of version {given['version']!r}; this is version {VERSION}")
        states = {}
        for name, state in given["states"].items():
            if not isinstance(state, dict) or not isinstance(state.get("state"), str):
                raise ValueError(f"the checkpoint is damaged: the state of '{name}' is {state!r}")
            states[name] = _State(state["state"], state.get("type"), True)
        self._states, self._loaded, self._complete = states, True, False

    def save(self, filename: str) -> str:
        """Writes the states to a file and returns its path. In `filename`, `{seq}` (or `{seq:04d}`) stands for the next
        free number."""
        text = self.serialize()
        path = filename
        if _has_number(filename):
            path = filename.format(seq=max((n for n, _ in _numbered(filename)), default=-1) + 1)
        with replacing(path, "w") as file:
            file.write(text)
        return path

    def load(self, filename: str) -> str:
        """Reads a file written by `save` and returns its path. Of several numbered files, the last one is read."""
        path = filename
        if _has_number(filename):
            found = _numbered(filename)
            if not found:
                raise FileNotFoundError(f"there is no checkpoint {filename}")
            path = max(found)[1]
        with open(path) as file:
            self.deserialize(file.read())
        return path


def _has_number(filename: str) -> bool:
    return any(field == "seq" for _, field, _, _ in string.Formatter().parse(filename))


def _numbered(filename: str) -> list[tuple[int, str]]:
    """The numbered files that match `filename`, with their numbers."""
    folder, name = os.path.split(filename)
    pattern = "".join(
        re.escape(text) + ("" if field is None else r"(\d+)") for text, field, _, _ in string.Formatter().parse(name)
    )
    if not os.path.isdir(folder or "."):
        return []
    found = [(m, entry) for entry in os.listdir(folder or ".") if (m := re.fullmatch(pattern, entry))]
    return [(int(m.group(1)), os.path.join(folder, entry)) for m, entry in found]


def current() -> Checkpoint:
    """Returns the checkpoint of the current `EvalContext`."""
    from ._context import EvalContext

    return EvalContext.current().checkpoint
