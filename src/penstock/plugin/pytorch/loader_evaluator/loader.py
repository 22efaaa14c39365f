# SPDX-License-Identifier: Apache-2.0
"""Measures how long a training loop waits for its loader, and how fast it would be without waiting."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

MODES = ("log", "replay")


class LoaderEvaluator:
    """Wraps a loader (`torch.utils.data.DataLoader`, an iterator of penstock, or any iterable with a length) without
    changing its batches, and records how long the loop waits for each batch.

    Train an epoch with `mode="log"`, then one with `mode="replay"`. The second repeats the first batches, which are
    kept in memory, so it shows how fast training would be if the loader cost nothing.

    Parameters
    ----------
    dataloader
        The loader. Its length (batches per epoch) is needed for "replay".
    mode : "log" or "replay"
    num_cached_batches : int, default 20
        Number of batches that "replay" keeps; they are taken in the constructor.
    metrics_file : str, optional
        File to which `save_metrics` writes. If given, it is also written at the end of each epoch.

    >>> from penstock.plugin.pytorch.loader_evaluator import LoaderEvaluator
    >>> loader = LoaderEvaluator([1, 2, 3], mode="replay", num_cached_batches=2)
    >>> list(loader)
    [1, 2, 1]
    >>> loader.get_metrics()["total_batches"]
    3
    """

    def __init__(
        self,
        dataloader: Iterable[Any],
        mode: str = "log",
        num_cached_batches: int = 20,
        metrics_file: str | None = None,
    ):
        if mode not in MODES:
            raise ValueError(f"LoaderEvaluator: mode takes 'log' or 'replay'; got {mode!r}")
        if mode == "replay" and num_cached_batches < 1:
            raise ValueError(f"LoaderEvaluator: num_cached_batches takes at least 1; got {num_cached_batches}")
        self.dataloader, self.mode, self.num_cached_batches = dataloader, mode, num_cached_batches
        self.metrics_file = metrics_file
        self._waits: list[float] = []
        self._seconds = 0.0
        self._kept: list[Any] = []
        if mode == "replay":
            self._kept = list(itertools.islice(dataloader, num_cached_batches))
            if not self._kept:
                raise ValueError("LoaderEvaluator: the loader gave no batch to replay")

    def __len__(self) -> int:
        return len(self.dataloader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        """Iterates over one epoch; metrics are reset."""
        self._waits, self._seconds = [], 0.0
        if self.mode == "replay":
            batches: Iterator[Any] = itertools.islice(itertools.cycle(self._kept), len(self))
        else:
            batches = iter(self.dataloader)
        start = time.perf_counter()
        try:
            while True:
                asked = time.perf_counter()
                try:
                    batch = next(batches)
                except StopIteration:
                    break
                self._waits.append(time.perf_counter() - asked)
                yield batch
        finally:
            self._seconds = time.perf_counter() - start
            if self.metrics_file is not None:
                self.save_metrics()

    def get_metrics(self) -> dict[str, Any]:
        """Metrics of the last epoch, in seconds: `total_time` from the request for the first batch to the end of the
        epoch, including the loop's own work; `batch_times`, the wait for each batch, and their mean, minimum,
        maximum."""
        waits = self._waits
        metrics: dict[str, Any] = {"mode": self.mode, "total_batches": len(waits), "total_time": self._seconds}
        if waits:
            metrics["avg_batch_time"] = sum(waits) / len(waits)
            metrics["min_batch_time"], metrics["max_batch_time"] = min(waits), max(waits)
        metrics["batch_times"] = list(waits)
        return metrics | {"cached_batches": len(self._kept), "cache_ready": bool(self._kept)}

    def save_metrics(self, filename: str | None = None) -> None:
        """Writes the metrics as JSON to `filename`, or to `metrics_file`."""
        path = filename if filename is not None else self.metrics_file
        if path is None:
            raise ValueError("LoaderEvaluator.save_metrics: give a filename, or metrics_file when it is made")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self.get_metrics(), f, indent=2)

    def print_summary(self) -> None:
        """Prints the metrics, and the share of the epoch that was spent waiting."""
        m = self.get_metrics()
        print(f"Loader ({self.mode}): {m['total_batches']} batches in {m['total_time']:.3f} s")
        if self._waits:
            waited = sum(self._waits)
            share = waited / m["total_time"] if m["total_time"] else 0.0
            print(f"  waited for batches: {waited:.3f} s, {share:.1%} of the time")
            print(
                f"  per batch: {1e3 * m['avg_batch_time']:.3f} ms on average, {1e3 * m['min_batch_time']:.3f} at "
                f"least, {1e3 * m['max_batch_time']:.3f} at most"
            )
        if self._kept:
            print(f"  replays {len(self._kept)} batches kept in memory")
