# SPDX-License-Identifier: Apache-2.0
"""What bars of progress tell about the pipelines that feed a loop. Imports no framework."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

from ..pipeline import Pipeline

if TYPE_CHECKING:
    from tqdm import tqdm

__all__ = ["LoaderSpeed", "progress_bar"]

_Batch = TypeVar("_Batch")


class LoaderSpeed:
    """How fast pipelines give samples, and which share of the time the loop waits for them.

    For bars and logs of one's own: `read()` tells both since it was called last.

    Parameters
    ----------
    source
        A Pipeline, an iterator of `penstock.plugin`, or a list of either.

    >>> from penstock import fn, pipeline_def
    >>> @pipeline_def(batch_size=2, num_threads=1)
    ... def numbers():
    ...     return fn.random.uniform()
    >>> pipe = numbers()
    >>> speed = LoaderSpeed(pipe)
    >>> batch = pipe.run()
    >>> sorted(speed.read())
    ['samples_per_s', 'waited_share']
    """

    def __init__(self, source: Any):
        self._pipes = pipelines_of(source)
        if not self._pipes:
            raise TypeError(f"a Pipeline or an iterator of penstock.plugin is needed; got {type(source).__name__}")
        self._last = self._totals()

    def read(self) -> dict[str, float]:
        """`samples_per_s` that the pipelines made; `waited_share` of the time, 0 to 1, that the loop waited."""
        before, self._last = self._last, self._totals()
        ns, samples, waited = (now - then for now, then in zip(self._last, before))
        return {"samples_per_s": samples / max(ns / 1e9, 1e-9), "waited_share": min(waited / max(ns, 1), 1.0)}

    def limit(self) -> str:
        """What limits the first pipeline, in a sentence: `Pipeline.stats()["limit"]`."""
        return str(self._pipes[0].stats()["limit"])

    def _totals(self) -> tuple[int, int, int]:
        totals = [p._runner.statistics.totals() for p in self._pipes]
        return time.monotonic_ns(), sum(t.samples for t in totals), sum(t.waited_ns for t in totals)


def pipelines_of(source: Any) -> list[Pipeline]:
    """Those of an iterator, or of a list of iterators; none if it is something else."""
    if isinstance(source, Pipeline):
        return [source]
    if isinstance(source, (list, tuple)):
        return [p for each in source for p in pipelines_of(each)]
    return list(getattr(source, "_pipes", ()))


def progress_bar(batches: Iterable[_Batch], pipeline: Any = None, **kwargs: Any) -> tqdm[_Batch]:
    """A bar of tqdm over an iterator, which also tells samples per second and how long the loop waits for data.

    Needs `pip install tqdm`.

    Parameters
    ----------
    batches
        What to iterate over: an iterator of `penstock.plugin`, or anything that takes batches of `pipeline`.
    pipeline
        Whose figures are shown; those of `batches` if it is None.
    kwargs
        Of `tqdm.tqdm`, such as `desc`, `total`, `mininterval` and `disable`.

    >>> from penstock.plugin.pytorch import DALIGenericIterator  # doctest: +SKIP
    >>> for batch in progress_bar(DALIGenericIterator(pipe, ["x"]), desc="epoch 1"):  # doctest: +SKIP
    ...     train(batch)
    epoch 1: 100%|##########| 5005/5005 [04:33<00:00, 18.3it/s, samples/s=4692, waits=0.4%]
    """
    try:
        from tqdm.auto import tqdm
    except ImportError:
        raise ImportError("penstock.plugin.progress.progress_bar needs tqdm: pip install tqdm") from None
    source = batches if pipeline is None else pipeline
    lately, overall = LoaderSpeed(source), LoaderSpeed(source)

    class Bar(tqdm):
        _speed = lately  # since the bar was drawn last

        def display(self, *args: Any, **kwargs: Any) -> Any:
            now = self._speed.read()
            shown = {"samples/s": f"{now['samples_per_s']:.0f}", "waits": f"{now['waited_share']:.1%}"}
            self.set_postfix(shown, refresh=False)
            return super().display(*args, **kwargs)

        def close(self) -> None:
            """Leaves the figures of the whole loop."""
            self._speed = overall
            super().close()

    return Bar(batches, **kwargs)
