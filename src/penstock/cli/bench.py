# SPDX-License-Identifier: Apache-2.0
"""`penstock bench`: runs a pipeline on its own for some time."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import os
import sys
import time
from collections.abc import Callable
from typing import Any

from ..core.errors import suggest
from ..pipeline import Pipeline

_WARM_UP_BATCHES = 5


class NotMeasured(Exception):
    """Why there is nothing to measure: what the caller has to change."""


def load(name: str, given: dict[str, Any]) -> Pipeline:
    """The pipeline `MODULE:NAME` or `FILE.py:NAME`. `given` replaces arguments of the definition."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise NotMeasured(f"'{name}' is not MODULE:NAME or FILE.py:NAME, such as train:pipeline")
    module = _module(place)
    found = getattr(module, attribute, None)
    if found is None:
        names = [k for k, v in vars(module).items() if callable(v) or isinstance(v, Pipeline)]
        raise NotMeasured(f"{place} has no '{attribute}'.{suggest(attribute, names)}")
    if callable(found) and (missing := _missing(found, given)):
        raise NotMeasured(
            f"'{attribute}' of {place} takes arguments without a default ({missing}); add a function without any to "
            f"the file that returns the pipeline, such as {attribute}(...)"
        )
    made = found if isinstance(found, Pipeline) else found(**given) if callable(found) else None
    if not isinstance(made, Pipeline):
        raise NotMeasured(
            f"'{attribute}' of {place} is neither a Pipeline nor a function that returns one; got {found!r}"
        )
    if made is found and given:
        raise NotMeasured(f"'{attribute}' of {place} is made already; {', '.join(given)} can't be changed")
    if made.max_batch_size is None:
        raise NotMeasured(f"'{attribute}' of {place} has no batch_size; give one by --batch-size")
    return made


def _missing(define: Callable[..., Any], given: dict[str, Any]) -> str:
    """The names of the arguments that a call with `given` lacks."""
    try:
        parameters = inspect.signature(define).parameters.values()
    except (TypeError, ValueError):  # of built-in functions
        return ""
    needed = [p for p in parameters if p.default is p.empty and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return ", ".join(p.name for p in needed if p.name not in given)


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{place}.".startswith(f"{e.name}."):
                raise  # the module itself imports a missing module
            raise NotMeasured(f"there is no module '{place}' here or on Python's path") from None
    if not os.path.exists(place):
        raise NotMeasured(f"there is no file {place}")
    sys.path.insert(0, os.path.dirname(os.path.abspath(place)))
    spec = importlib.util.spec_from_file_location(os.path.basename(place)[:-3], place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def measure(pipe: Pipeline, seconds: float) -> Any:
    """The statistics of `Pipeline.stats` over `seconds`, after a few warm-up batches."""
    pipe.build()
    for _ in range(_WARM_UP_BATCHES):
        next_batch(pipe)
    pipe.reset_stats()
    begin = shown = time.monotonic()
    samples = 0
    while (now := time.monotonic()) < begin + seconds:
        samples += len(next_batch(pipe)[0])
        if sys.stderr.isatty() and now > shown + 0.25:
            shown = now
            rate = f"{samples / (now - begin):,.0f} samples/s"
            print(f"\r{rate}, {begin + seconds - now:.0f} s left ", end="", file=sys.stderr, flush=True)
    if shown > begin:
        print("\r" + " " * 50 + "\r", end="", file=sys.stderr)
    return pipe.stats()


def next_batch(pipe: Pipeline) -> tuple[Any, ...]:
    """Returns the next batch; at the end of an epoch, the first of the next one."""
    try:
        return pipe.run()
    except StopIteration:
        pipe.reset()
    try:
        return pipe.run()
    except StopIteration:
        raise NotMeasured(
            "the source has ended, and does not begin again (see `cycle` of fn.external_source)"
        ) from None
