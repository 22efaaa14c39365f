# SPDX-License-Identifier: Apache-2.0
"""Progress bars that show figures of the pipelines that feed a loop. Imports no framework."""

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
    """Measures how fast pipelines produce samples, and the share of time that the loop waits for them.

    For your own progress bars and logs: `read()` returns both since its last call.

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
        """Returns `samples_per_s` made by the pipelines and `waited_share`, the share of time the loop waited, 0 to
        1."""
        before, self._last = self._last, self._totals()
        ns, samples, waited = (now - then for now, then in zip(self._last, before))
        return {"samples_per_s": samples / max(ns / 1e9, 1e-9), "waited_share": min(waited / max(ns, 1), 1.0)}

    def limit(self) -> str:
        """A sentence about what limits the first pipeline: `Pipeline.stats()["limit"]`."""
        return str(self._pipes[0].stats()["limit"])

    def _totals(self) -> tuple[int, int, int]:
        totals = [p._runner.statistics.totals() for p in self._pipes]
        return time.monotonic_ns(), sum(t.samples for t in totals), sum(t.waited_ns for t in totals)


def pipelines_of(source: Any) -> list[Pipeline]:
    """The pipelines of an iterator, or of a list of iterators; empty for anything else."""
    if isinstance(source, Pipeline):
        return [source]
    if isinstance(source, (list, tuple)):
        return [p for each in source for p in pipelines_of(each)]
    return list(getattr(source, "_pipes", ()))


def progress_bar(batches: Iterable[_Batch], pipeline: Any = None, **kwargs: Any) -> tqdm[_Batch]:
    """A tqdm progress bar over an iterator, which also shows samples per second and how long the loop waits for data.

    Needs `pip install tqdm`.

    Parameters
    ----------
    batches
        The iterable: an iterator of `penstock.plugin`, or anything that returns batches of `pipeline`.
    pipeline
        The pipeline whose figures are shown. By default that of `batches`.
    kwargs
        Arguments of `tqdm.tqdm`, such as `desc`, `total`, `mininterval` and `disable`.

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
        _speed = lately  # since the bar was last drawn

        def display(self, *args: Any, **kwargs: Any) -> Any:
            now = self._speed.read()
            shown = {"samples/s": f"{now['samples_per_s']:.0f}", "waits": f"{now['waited_share']:.1%}"}
            self.set_postfix(shown, refresh=False)
            return super().display(*args, **kwargs)

        def close(self) -> None:
            """Shows the figures of the whole loop."""
            self._speed = overall
            super().close()

    return Bar(batches, **kwargs)
