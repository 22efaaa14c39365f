# SPDX-License-Identifier: Apache-2.0
"""Converts pipelines serialized by DALI to the content that `serial.load` takes.

DALI writes a protobuf message. Its fields, as observed with DALI 2.4: of a pipeline 1 threads, 2 batch
size, 5 operators, 7 outputs, 8 device, 9 seed; of an operator 1 name, 2 inputs, 3 outputs, 4 arguments, 5 the name of
the call; of an input or output 1 name, 2 device, 3 whether it is an argument, 4 of which name; of an argument 1 name,
2 type, 3 float, 4 integer, 5 string, 6 boolean, 7 elements, 8 whether it is a list.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from typing import Any, cast

import numpy as np

from ..core.dtypes import DALIDataType
from ..core.op import REGISTRY
from . import serial

_FIELDS = {"float": 3, "int64": 4, "string": 5, "bool": 6}
_CPU_ONLY = -99999
# Arithmetic operations with other names in DALI; `plus` is the identity.
_OPERATIONS = {"minus": "neg", "fdiv": "div", "div": "floordiv", "neq": "ne", "leq": "le", "geq": "ge"}
_ADVICE = "put the program that made it into its place, as dali.py with @autoserialize, or serialise it with penstock"


def is_dalis(data: bytes) -> bool:
    """Whether this may be a pipeline serialized by DALI: its first field is the number of threads."""
    return data[:1] == b"\x08"


def content(data: bytes) -> dict[str, Any]:
    """Returns `arguments` of the pipeline, `nodes`, `scopes`, `outputs`, `sinks`. Raises ValueError for damaged data
    and for operators that penstock does not have."""
    try:
        return _Graph(_message(data)).content
    except (AttributeError, IndexError, KeyError, TypeError, struct.error, UnicodeDecodeError) as e:
        what = f"{type(e).__name__}: {e}"
        raise ValueError(f"not a pipeline serialised by DALI, or a damaged one: {what}") from None


# Messages -------------------------------------------------------------------------------------------------------------

_Message = dict[int, list[Any]]  # the values of each field: int, float, or bytes


def _message(data: bytes) -> _Message:
    found: _Message = defaultdict(list)
    at, value = 0, cast(Any, None)
    while at < len(data):
        key, at = _varint(data, at)
        kind = key & 7
        if kind == 0:
            value, at = _varint(data, at)
            value -= (value >> 63) << 64  # negative integers are written as 64-bit
        elif kind == 5:
            (value,), at = struct.unpack_from("<f", data, at), at + 4
        elif kind == 1:
            (value,), at = struct.unpack_from("<d", data, at), at + 8
        elif kind == 2:
            length, at = _varint(data, at)
            if at + length > len(data):
                raise IndexError("it ends in the middle of a field")
            value, at = data[at : at + length], at + length
        else:
            raise IndexError(f"there is no field of the kind {kind}")
        found[key >> 3].append(value)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        value |= (data[at] & 127) << shift
        shift, at = shift + 7, at + 1
        if data[at - 1] < 128:
            return value & (1 << 64) - 1, at


def _text(message: _Message, field: int, default: str = "") -> str:
    return message[field][0].decode() if message[field] else default


def _value(argument: _Message) -> Any:
    kind = _text(argument, 2)
    if argument[7] or (argument[8] and argument[8][0]):
        return [_value(_message(element)) for element in argument[7]]
    if kind not in _FIELDS or not argument[_FIELDS[kind]]:
        raise KeyError(f"the argument {_text(argument, 1)!r} is of the type {kind!r}")
    value = argument[_FIELDS[kind]][0]
    return value.decode() if kind == "string" else bool(value) if kind == "bool" else value


def _type(number: Any) -> Any:
    if isinstance(number, list):
        return [_type(n) for n in number]
    return {"enum": "DALIDataType", "name": DALIDataType(number).name}


# The graph ------------------------------------------------------------------------------------------------------------


def _plain(name: str) -> str:
    return name.replace("__", ".").replace("_", "").lower()


class _Graph:
    def __init__(self, pipeline: _Message):
        self._known = {_plain(name.replace(".", "__")): name for name in REGISTRY}
        self._nodes: list[dict[str, Any]] = []
        self._where: dict[str, list[int]] = {}  # [node, output] by the name and device of data
        for operator in pipeline[5]:
            self._add(_message(operator))
        outputs = [self._edge(_message(o)) for o in pipeline[7]]
        device = pipeline[8][0] if pipeline[8] else _CPU_ONLY
        arguments = {"batch_size": pipeline[2][0], "num_threads": pipeline[1][0]}
        arguments |= {"device_id": None if device == _CPU_ONLY else device}
        arguments |= {"seed": pipeline[9][0]} if pipeline[9] else {}
        self.content = {"arguments": arguments, "nodes": self._nodes, "scopes": [], "outputs": outputs, "sinks": []}

    def _node(self, operator: str, inputs: list[Any], arguments: dict[str, Any], **more: Any) -> list[int]:
        """Adds a node and returns its first output."""
        entry = {"operator": operator, "name": f"__{len(self._nodes)}", "device": "cpu", "inputs": inputs, "data": {}}
        self._nodes.append({**entry, "arguments": arguments, **more})
        return [len(self._nodes) - 1, 0]

    def _edge(self, data: _Message) -> list[int]:
        """The [node, output] of data; adds a copy to the required device if needed."""
        name, device = _text(data, 1), _text(data, 2)
        key = f"{name} {device}"
        if key not in self._where:
            other = self._where[f"{name} {'cpu' if device == 'gpu' else 'gpu'}"]
            self._where[key] = self._node(device, [other], {}, device=device)
        return self._where[key]

    def _add(self, operator: _Message) -> None:
        name, given = _text(operator, 1), dict(map(self._argument, operator[4]))
        inputs = [_message(i) for i in operator[2]]
        plain = [self._edge(i) for i in inputs if not i[3][0]]
        data = {_text(i, 4): self._edge(i) for i in inputs if i[3][0]}
        if name.lstrip("_") == "ArithmeticGenericOp":
            made = self._arithmetic(given, plain)
        elif name.lstrip("_") == "TensorSubscript":
            made = self._subscript(given, plain, data)
        else:
            made = self._operator(name, operator, given, plain, data)
        for index, output in enumerate(map(_message, operator[3])):
            self._where[f"{_text(output, 1)} {_text(output, 2)}"] = [made[0], made[1] + index]

    @staticmethod
    def _argument(data: bytes) -> tuple[str, Any]:
        message = _message(data)
        return _text(message, 1), _value(message)

    def _operator(self, name: str, operator: _Message, given: dict[str, Any], inputs: Any, data: Any) -> list[int]:
        known = self._known.get(_plain(name))
        if known is None or name.startswith("_"):
            raise ValueError(f"it has DALI's operator {name}, which can't be taken over; {_ADVICE}")
        device, call = given.pop("device", "cpu"), _text(operator, 5)
        given = {k: v for k, v in given.items() if k[0] != "_" and not k.startswith("preserve")}
        if known == "external_source":
            given["name"] = call
            if "dtype" in given:  # may be any object
                given["dtype"] = _type(given["dtype"])
        unknown = sorted(given.keys() - REGISTRY[known].schema.keys())
        if unknown:
            raise ValueError(f"fn.{known} has no argument {', '.join(unknown)}; {_ADVICE}")
        return self._node(known, inputs, given, name=call, device=device, data=data)

    def _arithmetic(self, given: dict[str, Any], inputs: list[Any]) -> list[int]:
        """Converts an expression such as `mul(&0 $0:int32)`: `&` are inputs, `$` are indices in the list of constants
        of their type."""
        match = re.fullmatch(r"(\w+)\(([^()]*)\)", given["expression_desc"])
        if match is None:
            raise ValueError(f"its expression {given['expression_desc']} can't be taken over; {_ADVICE}")
        operands: list[Any] = []
        for token in match[2].split():
            number, _, kind = token[1:].partition(":")
            if token[0] == "&":
                operands.append(inputs[int(number)])
            else:
                numbers = given["real_constants" if kind.startswith("float") else "integer_constants"]
                operands.append(np.dtype(kind).type(numbers[int(number)]))
        if match[1] == "clamp":
            value, lo, hi = operands
            return self._operation("min", [self._operation("max", [value, lo]), hi])
        if match[1] == "plus":
            return operands[0]
        return self._operation(_OPERATIONS.get(match[1], match[1]), operands)

    def _operation(self, name: str, operands: list[Any]) -> list[int]:
        constants = [i for i, x in enumerate(operands) if isinstance(x, np.generic)]
        if len(operands) == 2 and not constants:
            return self._node("arithmetic", operands, {"operation": name})
        arguments: dict[str, Any] = {"operation": name}
        if constants:
            at = constants[0]
            if operands[at].dtype.name not in ("int32", "float32"):
                value = serial.encoded(operands[at])
                operands[at] = self._node("constant", [], {"value": value, "layout": ""})
                return self._operation(name, operands)
            arguments |= {"constant": operands[at].item(), "constant_at": at}
        return self._node("arithmetic", [x for x in operands if isinstance(x, list)], arguments, kind="_Single")

    def _subscript(self, given: dict[str, Any], inputs: list[Any], data: dict[str, Any]) -> list[int]:
        pattern = ""
        for k in range(given["num_subscripts"]):
            has = {part for part in ("at", "lo", "hi", "step") if f"{part}_{k}" in given or f"{part}_{k}" in data}
            pattern += "i" if "at" in has else "s" if has else ":"
        bounds = {k: v for k, v in given.items() if re.fullmatch(r"(at|lo|hi|step)_\d+", k)}
        device = given.get("device", "cpu")
        return self._node("subscript", inputs, {"pattern": pattern, **bounds}, data=data, device=device)
