# SPDX-License-Identifier: Apache-2.0
from .graph.node import DataNode

__all__ = ["DataNode"]
