# SPDX-License-Identifier: Apache-2.0
"""Operators that need PyTorch, as functions."""

from ._torch_function import torch_python_function

__all__ = ["torch_python_function"]
