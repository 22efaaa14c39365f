# SPDX-License-Identifier: Apache-2.0
"""`penstock bench`: runs a pipeline on its own for some time."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import time
from typing import Any

from ..core.errors import suggest
from ..pipeline import Pipeline

_WARM_UP_BATCHES = 5


class NotFound(Exception):
    """There is no such pipeline."""


def load(name: str, given: dict[str, Any]) -> Pipeline:
    """The pipeline `MODULE:NAME` or `FILE.py:NAME`. `given` replaces arguments of the definition."""
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise NotFound(f"'{name}' is not MODULE:NAME or FILE.py:NAME, such as train:pipeline")
    module = _module(place)
    found = getattr(module, attribute, None)
    if found is None:
        names = [k for k, v in vars(module).items() if callable(v) or isinstance(v, Pipeline)]
        raise NotFound(f"{place} has no '{attribute}'.{suggest(attribute, names)}")
    made = found if isinstance(found, Pipeline) else found(**given) if callable(found) else None
    if not isinstance(made, Pipeline):
        raise NotFound(f"'{attribute}' of {place} is neither a Pipeline nor a function that returns one; got {found!r}")
    if made is found and given:
        raise NotFound(f"'{attribute}' of {place} is made already; {', '.join(given)} can't be changed")
    return made


def _module(place: str) -> Any:
    if not place.endswith(".py"):
        sys.path.insert(0, os.getcwd())
        try:
            return importlib.import_module(place)
        except ModuleNotFoundError as e:
            if e.name is None or not f"{place}.".startswith(f"{e.name}."):
                raise  # the module itself imports a missing module
            raise NotFound(f"there is no module '{place}' here or on Python's path") from None
    if not os.path.exists(place):
        raise NotFound(f"there is no file {place}")
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
        return pipe.run()
