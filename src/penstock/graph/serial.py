# SPDX-License-Identifier: Apache-2.0
"""Converts the nodes of a pipeline to JSON-compatible data, and back. Reading it imports and executes nothing.

User functions are stored by name, "module:qualname"; the reader must supply them.
"""

from __future__ import annotations

import base64
import enum
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np

from ..core import dtypes
from ..core.op import REGISTRY, Operator, Returned
from .node import DataNode, Node
from .placement import ToCpu, ToGpu
from .scopes import Scope
from .trace import Definition

_ENUMS = {c.__name__: c for c in (dtypes.DALIDataType, dtypes.DALIImageType, dtypes.DALIInterpType)}


class NotSerializable(TypeError):
    """A value that can't be serialized."""


def name_of(function: Any) -> str:
    """The name under which a function is stored."""
    owner = function if hasattr(function, "__qualname__") else type(function)
    return f"{owner.__module__}:{owner.__qualname__}"


# Values --------------------------------------------------------------------------------------------------------------


def encoded(value: Any) -> Any:
    """Encodes a value without functions."""
    return _encode(value, {})


def _encode(value: Any, functions: dict[str, Any]) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return str(value) if isinstance(value, str) else value
    if isinstance(value, enum.Enum) and type(value).__name__ in _ENUMS:
        return {"enum": type(value).__name__, "name": value.name}
    if isinstance(value, (int, float)) and not isinstance(value, np.generic):
        return value
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        dtypes.from_numpy(array.dtype)
        data = base64.b64encode(array.tobytes()).decode()
        return {"array": array.dtype.name, "shape": list(np.shape(value)), "data": data, "scalar": np.ndim(value) == 0}
    if isinstance(value, bytes):
        return {"bytes": base64.b64encode(value).decode()}
    if isinstance(value, SimpleNamespace) or (isinstance(value, tuple) and hasattr(value, "_asdict")):
        fields = vars(value) if isinstance(value, SimpleNamespace) else value._asdict()
        return {"fields": {k: _encode(v, functions) for k, v in fields.items()}}
    if isinstance(value, (list, tuple)):
        return [_encode(v, functions) for v in value]
    if type(value) is dict and all(isinstance(k, str) for k in value):
        return {"items": {k: _encode(v, functions) for k, v in value.items()}}
    if isinstance(value, Returned):
        return {"returned": [_outputs(x) for x in value.outputs]}
    if isinstance(value, type) and value in (bool, int, float):
        return {"type": value.__name__}
    if callable(value) or hasattr(value, "__iter__"):
        name = name_of(value)
        while functions.setdefault(name, value) is not value:
            name += "'"
        return {"function": name}
    raise NotSerializable(f"{type(value).__name__} can't be serialised")


def _outputs(outputs: Any) -> Any:
    """The outputs of a call, with [node, output] for each."""
    if isinstance(outputs, dict):
        return {k: _outputs(x) for k, x in outputs.items()}
    return _edge(outputs) if isinstance(outputs, DataNode) else [_outputs(x) for x in outputs]


def _returned(outputs: Any, data: Callable[[Any], DataNode]) -> Any:
    """The reverse of `_outputs`."""
    if isinstance(outputs, dict):
        return {k: _returned(x, data) for k, x in outputs.items()}
    is_one = len(outputs) == 2 and all(isinstance(x, int) for x in outputs)
    return data(outputs) if is_one else [_returned(x, data) for x in outputs]


def _decode(value: Any, functions: Mapping[str, Any], data: Callable[[Any], DataNode]) -> Any:
    if isinstance(value, list):
        return [_decode(v, functions, data) for v in value]
    if not isinstance(value, dict):
        return value
    if "enum" in value:
        return _ENUMS[value["enum"]][value["name"]]
    if "array" in value:
        dtype = np.dtype(value["array"])
        dtypes.from_numpy(dtype)  # rejects other types
        array = np.frombuffer(base64.b64decode(value["data"]), dtype)
        array = array.reshape(value["shape"]).copy()
        return array[()] if value["scalar"] else array
    if "type" in value:
        return {"bool": bool, "int": int, "float": float}[value["type"]]
    if "bytes" in value:
        return base64.b64decode(value["bytes"])
    if "fields" in value:
        return SimpleNamespace(**{k: _decode(v, functions, data) for k, v in value["fields"].items()})
    if "items" in value:
        return {k: _decode(v, functions, data) for k, v in value["items"].items()}
    if "returned" in value:
        return Returned([_returned(x, data) for x in value["returned"]])
    return functions[value["function"]]


# Nodes ---------------------------------------------------------------------------------------------------------------


def _edge(data: DataNode) -> list[int]:
    return [data.source.number, data.index]


def dump(definition: Definition, functions: dict[str, Any]) -> dict[str, Any]:
    """Returns `scopes` and `nodes`; adds their functions to `functions` by name. NotSerializable names the operator and
    argument."""
    scopes: list[Scope] = []

    def number(scope: Scope | None) -> int:
        if scope is None:
            return -1
        if scope not in scopes:
            number(scope.parent)
            scopes.append(scope)
        return scopes.index(scope)

    nodes = []
    for node in definition.nodes:
        arguments = {}
        for name in sorted(node.op.given - node.args.keys()):
            try:
                arguments[name] = _encode(node.op.values[name], functions)
            except TypeError as e:
                raise NotSerializable(node.describe(f"argument '{name}': {e}")) from None
        entry: dict[str, Any] = {"operator": node.op.fn_name, "name": node.name, "device": node.device}
        if type(node.op) is not _known(node.op.fn_name):
            entry["kind"] = type(node.op).__name__
        entry |= {"inputs": [_edge(d) for d in node.inputs], "arguments": arguments}
        entry["data"] = {
            k: [{"node": _edge(x)} if isinstance(x, DataNode) else x for x in v] if isinstance(v, list) else _edge(v)
            for k, v in node.args.items()
        }
        if node.scope is not None or node.branch is not None:
            entry["scopes"] = [number(node.scope), number(node.branch)]
        nodes.append(entry)
    described = [[number(s.parent), _edge(s.condition), s.branch] for s in scopes]
    return {"scopes": described, "nodes": nodes}


def load(content: dict[str, Any], definition: Definition, functions: Mapping[str, Any]) -> Callable[[Any], DataNode]:
    """Adds the nodes to an empty definition. Returns a function from [node, output] to its DataNode.

    Raises ValueError, TypeError or KeyError if the content is invalid."""
    nodes: list[Node] = definition.nodes
    scopes: dict[int, Scope] = {}

    def data(edge: Any) -> DataNode:
        number, index = edge
        if not 0 <= number < len(nodes) or not 0 <= index < nodes[number].n_outputs:
            raise ValueError(f"there is no output {index} of node {number} yet")
        return nodes[number].outputs[index]

    def scope(number: int) -> Scope | None:
        if number < 0:
            return None
        if number not in scopes:
            parent, condition, branch = content["scopes"][number]
            if parent >= number:
                raise ValueError("a scope is inside of itself")
            scopes[number] = Scope(scope(parent), data(condition), bool(branch), ())
        return scopes[number]

    for entry in content["nodes"]:
        cls = _class(entry)
        given = {
            k: value if k in cls.tensors else cls.find_arg(k).convert(value)
            for k, v in entry["arguments"].items()
            for value in [_decode(v, functions, data)]
        }
        args: dict[str, Any] = {}
        for k, v in entry["data"].items():
            arg = cls.find_arg(k)
            if not arg.tensor:
                raise ValueError(f"argument '{k}' of fn.{cls.fn_name} takes no data")
            is_list = bool(v) and any(isinstance(x, dict) for x in v)
            args[k] = [data(x["node"]) if isinstance(x, dict) else arg._scalar(x) for x in v] if is_list else data(v)
        values = {n: given.get(n, None if n in args or a.required else a.default) for n, a in cls.schema.items()}
        missing = [n for n, a in cls.schema.items() if a.required and n not in given and n not in args]
        if missing:
            raise ValueError(f"fn.{cls.fn_name} lacks {', '.join(missing)}")
        inputs = tuple(data(e) for e in entry["inputs"])
        lo, hi = cls.inputs
        if not lo <= len(inputs) <= hi or entry["device"] not in cls.devices:
            raise ValueError(f"fn.{cls.fn_name} can't have {len(inputs)} inputs on device {entry['device']!r}")
        op = cls(values, {*given, *args})
        node = Node(op, inputs, args, str(entry["name"]), len(nodes), entry["device"], ())
        node.scope, node.branch = (scope(n) for n in entry.get("scopes", (-1, -1)))
        definition.add(node)
    return data


def _known(name: str) -> type[Operator] | None:
    return {"gpu": ToGpu, "cpu": ToCpu}.get(name) or REGISTRY.get(name)


def _class(entry: dict[str, Any]) -> type[Operator]:
    cls = _known(entry["operator"])
    kind = entry.get("kind")
    if cls is not None and kind is not None:
        cls = next((c for c in _subclasses(Operator) if c.__name__ == kind and c.fn_name == entry["operator"]), None)
    if cls is None:
        raise ValueError(f"this version of penstock has no operator fn.{entry['operator']}")
    return cls


def _subclasses(cls: type[Operator]) -> Iterator[type[Operator]]:
    for c in cls.__subclasses__():
        yield c
        yield from _subclasses(c)
