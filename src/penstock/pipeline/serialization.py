# SPDX-License-Identifier: Apache-2.0
"""Pipelines as data: `Pipeline.serialize` and `deserialize`, and pickling."""

from __future__ import annotations

import base64
import importlib
import json
import os
import pickle
import sys
from collections.abc import Mapping
from typing import Any

from ..graph import serial, trace
from ..graph.node import DataNode
from .checkpoints import Saving

VERSION = 1
_KIND = "penstock pipeline"


class Serialization(Saving):
    """Base of `Pipeline`."""

    definition: trace.Definition
    _output_nodes: list[DataNode] | None
    _sinks: list[DataNode]

    def _content(self, functions: dict[str, Any]) -> dict[str, Any]:
        self.build()
        assert self._plan is not None
        content = {_KIND: VERSION, "version": sys.modules["penstock"].__version__, "arguments": self._arguments()}
        content |= serial.dump(self.definition, functions)
        content["outputs"] = [list(e) for e in self._plan.outputs]
        content["sinks"] = [[s.source.number, s.index] for s in self._sinks]
        return content

    def serialize(
        self,
        define_graph: Any = None,
        filename: str | os.PathLike | None = None,
        *,
        embed_functions: bool = False,
        pickler: Any = None,
    ) -> bytes:
        """The pipeline as JSON, also written to `filename` if it is given: its arguments and its graph.

        Functions and sources of the user's are only named ("module:qualname"). With `embed_functions` they are
        pickled into it, by `pickler` (what has a `dumps`, such as the module cloudpickle); whoever reads it
        has to trust it.

        >>> from penstock import Pipeline, fn, pipeline_def
        >>> @pipeline_def(batch_size=2, seed=1)
        ... def pipe():
        ...     return fn.random.uniform()
        >>> again = Pipeline.deserialize(pipe().serialize())
        >>> bool((again.run()[0].as_array() == pipe().run()[0].as_array()).all())
        True
        """
        if define_graph is not None:
            if self._output_nodes is not None:
                raise RuntimeError("the pipeline has a definition already; leave define_graph out")
            self._define = define_graph
        functions: dict[str, Any] = {}
        content = self._content(functions)
        if functions and embed_functions:
            dumps = (pickler or pickle).dumps
            content["pickled"] = {k: base64.b64encode(dumps(f)).decode() for k, f in functions.items()}
        text = json.dumps(content, separators=(",", ":")).encode()
        if filename is not None:
            with open(filename, "wb") as f:
                f.write(text)
        return text

    @classmethod
    def deserialize(
        cls,
        serialized_pipeline: str | bytes | None = None,
        filename: str | os.PathLike | None = None,
        *,
        functions: Mapping[str, Any] | None = None,
        import_functions: bool = False,
        unpickle: bool = False,
        **kwargs: Any,
    ) -> Any:
        """The pipeline that was serialised, from its text or from a file. `kwargs` are arguments of Pipeline to change.

        Reading it executes nothing. If it names functions of the user's, give them in `functions`, by these names; or
        let them be imported with `import_functions`, or unpickled with `unpickle` if they are embedded: both execute
        what the one who wrote it chose.
        """
        if (serialized_pipeline is None) == (filename is None):
            raise ValueError("deserialize takes either serialized_pipeline or filename")
        if filename is not None:
            with open(filename, "rb") as f:
                serialized_pipeline = f.read()
        content = _parsed(serialized_pipeline)
        known = _functions(content, functions or {}, import_functions, unpickle)
        return cls._made_of(content, known, kwargs)

    @classmethod
    def _made_of(cls, content: dict[str, Any], functions: Mapping[str, Any], kwargs: dict[str, Any]) -> Any:
        from .pipeline import Pipeline  # the one class that has no arguments of its own

        strange = sorted(content["arguments"].keys() - Pipeline(1)._arguments().keys())
        if strange:
            raise ValueError(f"the serialised pipeline can't be read: it has unknown arguments: {', '.join(strange)}")
        pipe = Pipeline(**{**content["arguments"], **kwargs})
        try:
            data = serial.load(content, pipe.definition, functions)
            outputs, sinks = ([data(e) for e in content[k]] for k in ("outputs", "sinks"))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
            what = f"{type(e).__name__}: {e}"
            raise ValueError(f"the serialised pipeline can't be read: {what}") from None
        pipe.set_outputs(*outputs)
        pipe._sinks = sinks
        return pipe

    def deserialize_and_build(self, serialized_pipeline: str | bytes) -> None:
        """Takes over a serialised pipeline and builds it."""
        pipe = type(self).deserialize(serialized_pipeline)
        self.__dict__.update(pipe.__dict__)
        self.build()

    def __reduce__(self) -> Any:
        functions: dict[str, Any] = {}
        return _unpickled, (self._content(functions), functions)


def _unpickled(content: dict[str, Any], functions: dict[str, Any]) -> Any:
    return Serialization._made_of(content, functions, {})


def _parsed(text: Any) -> dict[str, Any]:
    try:
        content = json.loads(text)
    except (TypeError, ValueError) as e:
        raise ValueError(f"this is no serialised pipeline: {e}") from None
    version = content.get(_KIND) if isinstance(content, dict) else None
    if version is None:
        raise ValueError("this is JSON, but no serialised pipeline")
    if version != VERSION:
        raise ValueError(
            f"the pipeline was serialised in format {version} by penstock {content.get('version')}; this version reads "
            f"format {VERSION}"
        )
    for key, kind in (("arguments", dict), ("nodes", list), ("scopes", list), ("outputs", list), ("sinks", list)):
        if not isinstance(content.get(key), kind):
            raise ValueError(f"the serialised pipeline is damaged: '{key}' is {content.get(key)!r}")
    return content


def _named(value: Any) -> list[str]:
    """The functions that serialised arguments name."""
    if isinstance(value, dict):
        return [value["function"]] if "function" in value else []
    return [n for v in value for n in _named(v)] if isinstance(value, list) else []


def _functions(
    content: dict[str, Any], given: Mapping[str, Any], import_functions: bool, unpickle: bool
) -> dict[str, Any]:
    found = dict(given)
    nodes = [n for n in content["nodes"] if isinstance(n, dict) and isinstance(n.get("arguments"), dict)]
    names = sorted({name for n in nodes for v in n["arguments"].values() for name in _named(v)} - found.keys())
    missing = []
    for name in names:
        pickled = content.get("pickled", {}).get(name)
        if unpickle and pickled is not None:
            found[name] = pickle.loads(base64.b64decode(pickled))
        elif import_functions:
            found[name] = _imported(name)
        else:
            missing.append(name)
    if missing:
        embedded = any(m in content.get("pickled", {}) for m in missing)
        raise ValueError(
            f"the serialised pipeline calls functions of its author's: {', '.join(missing)}. Give them by "
            "functions={name: function}, or, if you trust whoever wrote it, say import_functions=True"
            + (" or unpickle=True" if embedded else "")
        )
    return found


def _imported(name: str) -> Any:
    module, _, path = name.rstrip("'").partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as e:
        how = f"give it by functions={{{name!r}: ...}}"
        raise ValueError(f"the function {name} can't be imported: {e}; {how}") from None
    return found
