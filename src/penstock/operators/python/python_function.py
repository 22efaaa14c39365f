# SPDX-License-Identifier: Apache-2.0
"""Calls a user's function with NumPy arrays."""

from ._function import UserFunction


class PythonFunction(UserFunction):
    """Calls a Python function with the samples as NumPy arrays.

    The function is called for one sample after the other and one batch after the other, in order, and never twice at
    once. The arrays share the memory of the inputs; the function may write to them and keep them. It returns an array,
    or a tuple of `num_outputs` arrays. All samples of an output must have the same type and number of dimensions. An
    exception in the function is an error of the batch, and its message has the function's own lines.

    >>> import numpy as np
    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2)
    ... def pipe():
    ...     x = fn.external_source(source=lambda i: [np.array([1, 2]), np.array([3])])
    ...     return fn.python_function(x, function=lambda a: a * a)
    >>> [pipe().run()[0].at(i).tolist() for i in range(2)]
    [[1, 4], [9]]
    """
