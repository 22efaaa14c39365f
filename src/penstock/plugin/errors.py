# SPDX-License-Identifier: Apache-2.0
"""Errors of the iterators."""

from __future__ import annotations


class IteratorError(ValueError, RuntimeError, AssertionError):
    """A wrong argument of an iterator, or a batch that it can't return. Also an AssertionError and a RuntimeError,
    which DALI raises for them."""


class IteratorTypeError(TypeError, AssertionError):
    """A thing of a wrong type; also an AssertionError, as in DALI."""
