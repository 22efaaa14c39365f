# SPDX-License-Identifier: Apache-2.0
"""Schemas of operators for programs: `backend.GetSchema`."""

from __future__ import annotations

import enum
import inspect
from typing import Any

from ..core.dtypes import DALIDataType, DALIImageType, DALIInterpType
from ..core.errors import suggest
from ..core.op import REGISTRY, Arg, Layout, Operator, PerFrame
from ..core.source import Source

_TYPES = {
    float: DALIDataType.FLOAT,
    int: DALIDataType.INT32,
    bool: DALIDataType.BOOL,
    str: DALIDataType.STRING,
    Layout: DALIDataType.TENSOR_LAYOUT,
    DALIDataType: DALIDataType.DATA_TYPE,
    DALIImageType: DALIDataType.IMAGE_TYPE,
    DALIInterpType: DALIDataType.INTERP_TYPE,
}


class OpSchema:
    """The name, inputs, devices and arguments of an operator."""

    def __init__(self, operator: type[Operator]):
        self._operator = operator

    def Name(self) -> str:
        """With its module: "readers__File"."""
        return "__".join([*self.ModulePath(), self.OperatorName()])

    def OperatorName(self) -> str:
        return self._operator.__name__

    def ModulePath(self) -> list[str]:
        return [part for part in self._operator.module.split(".") if part]

    def Dox(self) -> str:
        """What the operator does."""
        return inspect.getdoc(self._operator) or ""

    def MinNumInput(self) -> int:
        return self._operator.inputs[0]

    def MaxNumInput(self) -> int:
        return self._operator.inputs[1]

    def GetSupportedBackends(self) -> list[str]:
        return [d for d in ("cpu", "gpu", "mixed") if d in self._operator.devices]

    def GetSupportedLayouts(self, input: int) -> list[str]:
        """Layouts accepted for an input; none if any is."""
        return list(self._operator.layouts or ()) if input == 0 else []

    def AllowsSequences(self) -> bool:
        return bool(self._operator.by_frame) or any(layout.startswith("F") for layout in self.GetSupportedLayouts(0))

    def SupportsVolumetric(self) -> bool:
        return any("D" in layout for layout in self.GetSupportedLayouts(0))

    def IsStateful(self) -> bool:
        return issubclass(self._operator, Source) or self.HasRandomSeedArg()

    def IsDeprecated(self) -> bool:
        return False

    def IsInternal(self) -> bool:
        return False

    def IsDocHidden(self) -> bool:
        return False

    def IsNoPrune(self) -> bool:
        return False

    def HasRandomSeedArg(self) -> bool:
        return "seed" in self._operator.schema

    # Arguments

    def _argument(self, name: str) -> Arg:
        if name not in self._operator.schema:
            near = suggest(name, self._operator.schema)
            raise KeyError(f'Argument "{name}" is not defined for operator "{self.Name()}".{near}')
        return self._operator.schema[name]

    def GetArgumentNames(self) -> list[str]:
        return sorted(self._operator.schema)

    def HasArgument(self, name: str) -> bool:
        return name in self._operator.schema

    def IsArgumentOptional(self, name: str) -> bool:
        return not self._argument(name).required

    def IsTensorArgument(self, name: str) -> bool:
        """Whether it may be data, one value for each sample."""
        return self._argument(name).tensor

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        return isinstance(self._argument(name), PerFrame)

    def IsDeprecatedArg(self, name: str) -> bool:
        return bool(self._argument(name).deprecated)

    def GetArgumentDox(self, name: str) -> str:
        return self._argument(name).doc

    def GetArgumentType(self, name: str) -> DALIDataType:
        """Of a value; for lists, that of their elements."""
        return _TYPES.get(self._argument(name).type, DALIDataType.PYTHON_OBJECT)

    def HasArgumentDefaultValue(self, name: str) -> bool:
        arg = self._argument(name)
        return not arg.required and arg.default is not None

    def GetArgumentDefaultValueString(self, name: str) -> str:
        """The default as DALI writes it: `0.500000`, `[0.000000, ]`, `True`, `'error'`. ValueError if there is none."""
        if not self.HasArgumentDefaultValue(name):
            raise ValueError(f'Argument "{name}" in operator "{self.Name()}" has no default value.')
        arg = self._argument(name)
        values = arg.convert(arg.default)
        if arg.vector:
            return f"[{''.join(f'{_written(v)}, ' for v in values)}]"
        return _written(values)

    def __repr__(self) -> str:
        return f"<OpSchema {self.Name()}>"


def _written(value: Any) -> str:
    if isinstance(value, enum.Enum):
        return str(int(value.value))
    return f"{value:.6f}" if isinstance(value, float) else repr(value)


def TryGetSchema(name: str) -> OpSchema | None:
    """Returns the schema of an operator by its class name, such as "Resize" or "readers__File"; None if there is
    none."""
    for operator in REGISTRY.values():
        schema = OpSchema(operator)
        if schema.Name() == name:
            return schema
    return None


def GetSchema(name: str) -> OpSchema:
    """Returns the schema of an operator by its class name, such as "Resize". Raises KeyError if there is none."""
    found = TryGetSchema(name)
    if found is None:
        near = suggest(name, [OpSchema(operator).Name() for operator in REGISTRY.values()])
        raise KeyError(f"Schema for operator '{name}' not registered.{near}")
    return found
