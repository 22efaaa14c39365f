# SPDX-License-Identifier: Apache-2.0
"""`DataNode`, an edge of the graph, and `newaxis` for its subscripts."""

from .graph.node import DataNode
from .graph.subscript import newaxis

__all__ = ["DataNode", "newaxis"]
