# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline while it is being defined: nodes, outputs, and the defining function."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.errors import ArgumentValueError
from ..graph import trace
from ..graph.effects import Unmerged, holds_data
from ..graph.node import DataNode
from ..graph.scopes import bring
from ..graph.unbound import adopt


def outputs_of(result: Any) -> list[Any]:
    """The outputs from the return value of a function that defines a graph; a list of numbers is one constant."""
    several = isinstance(result, tuple) or (isinstance(result, list) and holds_data(result))
    return list(result) if several else [result]


def _holds_data(values: Any) -> bool:
    return any(_holds_data(v) if isinstance(v, (list, tuple)) else isinstance(v, DataNode) for v in values)


class TracedGraph:
    def __init__(self) -> None:
        self.definition = trace.Definition()
        self.outputs: list[Any] | None = None  # as given by the user; None if not defined yet
        self.sinks: list[DataNode] = []
        self.define: Callable[[], Any] | None = None  # the function of `pipeline_def`
        self.defined_at = ""  # its name and location, for errors

    @property
    def name(self) -> str:
        """The name of the defining function; "pipeline" if there is none."""
        function = self.define.func if isinstance(self.define, functools.partial) else self.define
        return getattr(function, "__name__", "pipeline")

    def output_nodes(self) -> list[DataNode]:
        """The outputs as nodes of this graph. Requires that the pipeline is the current one."""
        if not self.outputs:
            raise ValueError(f"the pipeline{self.defined_at} has no outputs")
        return [self.as_output(o, i) for i, o in enumerate(self.outputs)]

    def adopt_sinks(self) -> list[DataNode]:
        self.sinks = [adopt(self.definition, s) for s in self.sinks]
        return self.sinks

    def as_output(self, value: Any, i: int) -> DataNode:
        """Converts output `i`, a DataNode or a constant, to a node of this graph."""
        if isinstance(value, DataNode):
            node = bring(self.definition, value, None)
            if self.definition.names.get(node.source.name) is not node.source:
                text = f"output {i} of the pipeline{self.defined_at} belongs to another pipeline"
                raise ArgumentValueError(node.source.describe(text))
            return node
        if isinstance(value, Unmerged):
            value.complain()
        wrong = f"output {i} of the pipeline{self.defined_at} must be a DataNode or a constant"
        if isinstance(value, (list, tuple)) and _holds_data(value):
            raise TypeError(
                f"{wrong}; got a {type(value).__name__} with DataNodes in it. Unpack it: return *values, more"
            )
        if not isinstance(value, (int, float, list, tuple)) and not hasattr(value, "__array__"):
            raise TypeError(f"{wrong}; got {type(value).__name__}" + ". Is its return missing?" * (value is None))
        return trace.constant(np.asarray(value))


class GraphBuilder:
    """Base of `Pipeline`: methods used while its graph is being defined."""

    def __init__(self) -> None:
        self._graph = TracedGraph()

    @property
    def _is_built(self) -> bool:
        raise NotImplementedError

    @property
    def definition(self) -> trace.Definition:
        """The nodes of the graph."""
        return self._graph.definition

    @staticmethod
    def current() -> Any:
        """The pipeline that is being defined by this thread."""
        return trace.stack()[-1] if trace.stack() else None

    @staticmethod
    def push_current(pipeline: Any) -> None:
        trace.stack().append(pipeline)

    @staticmethod
    def pop_current() -> None:
        trace.stack().pop()

    def __enter__(self) -> Any:
        if self._is_built:
            raise RuntimeError("the pipeline is built; its definition can no longer be changed")
        GraphBuilder.push_current(self)
        return self

    def __exit__(self, *exc: object) -> None:
        GraphBuilder.pop_current()

    def set_outputs(self, *output_data_nodes: Any) -> None:
        """Sets what the pipeline returns: DataNodes, or constants."""
        if self._is_built:
            raise RuntimeError("the pipeline is built; its outputs can no longer be changed")
        self._graph.outputs = list(output_data_nodes)

    def add_sink(self, edge: DataNode) -> None:
        """Keeps the operators that `edge` depends on in the graph, although it is not an output."""
        self._graph.sinks.append(edge)

    def define_graph(self) -> Any:
        """To be overridden by sub-classes: builds the graph and returns its outputs."""
        if self._graph.define is not None:
            return self._graph.define()
        raise NotImplementedError(
            "the pipeline has no definition: use @pipeline_def, `with pipe:` and set_outputs(), or override "
            "define_graph()"
        )
