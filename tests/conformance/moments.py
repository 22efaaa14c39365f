# SPDX-License-Identifier: Apache-2.0
"""The moments at which pipelines fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any


def failure(make: Callable[[], Any], define: Callable[[], Any]) -> tuple[int, Exception | None]:
    """When a pipeline fails (0: at its definition, 1: when it is built, 2: when it runs, 3: never), and the exception.
    `make` returns the pipeline, `define` its outputs."""
    moment = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            pipe = make()
            with pipe:
                out = define()
                pipe.set_outputs(*(out if isinstance(out, (list, tuple)) else (out,)))
            moment = 1
            pipe.build()
            moment = 2
            pipe.run()
        except Exception as e:
            return moment, e
    return 3, None
