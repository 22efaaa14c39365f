# SPDX-License-Identifier: Apache-2.0
"""Serializes pipelines: JSON with their arguments and graph, and the functions that the graph names."""

from __future__ import annotations

import base64
import importlib
import json
import os
import pickle
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..core.errors import ArgumentTypeError, ArgumentValueError
from ..core.new_files import replacing
from ..exec.plan import Plan
from ..graph import dali_serial, serial
from ..graph.trace import Definition
from .settings import Settings

if TYPE_CHECKING:
    from .pipeline import Pipeline

VERSION = 1
_KIND = "penstock pipeline"


def content_of(pipe: Pipeline, functions: dict[str, Any]) -> dict[str, Any]:
    """Returns a pipeline as JSON values; adds the functions that it calls to `functions`, by name."""
    pipe.build()
    assert pipe._plan is not None
    return content_of_plan(pipe._plan, pipe._graph.definition, pipe._graph.sinks, pipe._settings, functions)


def content_of_plan(
    plan: Plan, definition: Definition, sinks: list[Any], settings: Settings, functions: dict[str, Any]
) -> dict[str, Any]:
    """As `content_of`, while the pipeline is being built."""
    content = {_KIND: VERSION, "version": sys.modules["penstock"].__version__}
    content |= {"arguments": settings.arguments(), **serial.dump(definition, functions)}
    content["outputs"] = [list(e) for e in plan.outputs]
    content["sinks"] = [[s.source.number, s.index] for s in sinks]
    return content


def text_of(pipe: Pipeline, embed_functions: bool, pickler: Any) -> bytes:
    """Returns a pipeline as JSON, optionally with its functions, pickled."""
    functions: dict[str, Any] = {}
    content = content_of(pipe, functions)
    if functions and embed_functions:
        dumps = (pickler or pickle).dumps
        content["pickled"] = {k: base64.b64encode(dumps(f)).decode() for k, f in functions.items()}
    return json.dumps(content, separators=(",", ":")).encode()


def made_of(
    make: Callable[..., Pipeline], content: dict[str, Any], functions: Mapping[str, Any], changed: dict[str, Any]
) -> Pipeline:
    """Creates a pipeline by `make` from the result of `content_of`, with some arguments `changed`."""
    strange = sorted(content["arguments"].keys() - Settings(1).arguments().keys())
    if strange:
        raise ArgumentValueError(
            f"the serialised pipeline can't be read: it has unknown arguments: {', '.join(strange)}"
        )
    pipe = make(**{**content["arguments"], **changed})
    try:
        data = serial.load(content, pipe.definition, functions)
        outputs, sinks = ([data(e) for e in content[k]] for k in ("outputs", "sinks"))
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as e:
        what = f"{type(e).__name__}: {e}"
        raise ArgumentValueError(f"the serialised pipeline can't be read: {what}") from None
    pipe.set_outputs(*outputs)
    pipe._graph.sinks = sinks
    return pipe


def written(content: bytes, filename: str | os.PathLike | None) -> bytes:
    """Returns the content; also writes it to the file if one is given."""
    if filename is not None:
        with replacing(filename) as f:
            f.write(content)
    return content


def parsed(text: Any, path: str | os.PathLike | None) -> dict[str, Any]:
    """Parses the result of `content_of`, from its text or a file."""
    if (text is None) == (path is None):
        raise ArgumentValueError("deserialize takes either serialized_pipeline or filename")
    if path is not None:
        with open(path, "rb") as f:
            text = f.read()
    if isinstance(text, bytes) and dali_serial.is_dalis(text):
        return dali_serial.content(text)
    try:
        content = json.loads(text)
    except TypeError as e:
        raise ArgumentTypeError(f"not a serialised pipeline: {e}") from None
    except ValueError as e:
        raise ArgumentValueError(f"not a serialised pipeline: {e}") from None
    version = content.get(_KIND) if isinstance(content, dict) else None
    if version is None:
        raise ArgumentValueError("this is JSON, but not a serialised pipeline")
    if version != VERSION:
        raise ArgumentValueError(
            f"the pipeline was serialised in format {version} by penstock {content.get('version')}; this version reads "
            f"format {VERSION}"
        )
    for key, kind in (("arguments", dict), ("nodes", list), ("scopes", list), ("outputs", list), ("sinks", list)):
        if not isinstance(content.get(key), kind):
            raise ArgumentValueError(f"the serialised pipeline is damaged: '{key}' is {content.get(key)!r}")
    return content


def _named(value: Any) -> list[str]:
    """Names of the functions in serialized arguments."""
    if isinstance(value, dict):
        inside = value.get("items", value.get("fields"))
        if isinstance(inside, dict):
            return [n for v in inside.values() for n in _named(v)]
        return [value["function"]] if "function" in value else []
    return [n for v in value for n in _named(v)] if isinstance(value, list) else []


def functions_of(
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
        raise ArgumentValueError(
            f"the serialised pipeline calls functions of its author: {', '.join(missing)}. Pass them as "
            "functions={name: function}, or, if you trust the author, set import_functions=True"
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
        how = f"pass it as functions={{{name!r}: ...}}"
        raise ArgumentValueError(f"the function {name} can't be imported: {e}; {how}") from None
    return found
