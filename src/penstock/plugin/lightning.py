# SPDX-License-Identifier: Apache-2.0
"""A Lightning callback that reports how long a training waits for its pipelines."""

from __future__ import annotations

from typing import Any

from .progress import LoaderSpeed, pipelines_of

try:
    from lightning.pytorch import Callback
except ImportError:  # the older package
    from pytorch_lightning import Callback  # type: ignore[assignment, no-redef, unused-ignore]

__all__ = ["LoaderProgress"]


class LoaderProgress(Callback):
    """Logs `loader/samples_per_s` and `loader/waited_share` of the training's pipelines to the progress bar and to the
    trainer's loggers.

    Parameters
    ----------
    every_n_steps
        Interval of the logs. Figures cover the steps since the last log.
    pipeline
        A Pipeline or an iterator of `penstock.plugin`. By default the dataloaders of the trainer.
    prog_bar
        Whether the progress bar shows the share of time that the training waits.

    >>> from lightning import Trainer  # doctest: +SKIP
    >>> trainer = Trainer(callbacks=[LoaderProgress(every_n_steps=50)])  # doctest: +SKIP
    """

    def __init__(self, every_n_steps: int = 50, pipeline: Any = None, prog_bar: bool = True):
        if every_n_steps < 1:
            raise ValueError(f"every_n_steps takes a number above 0; got {every_n_steps}")
        self._every, self._source, self._prog_bar = every_n_steps, pipeline, prog_bar
        self._speed: LoaderSpeed | None = None

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if self._speed is None:
            source = trainer.train_dataloader if self._source is None else self._source
            source = list(source.values()) if isinstance(source, dict) else source
            if pipelines_of(source):
                self._speed = LoaderSpeed(source)

    def on_train_batch_end(self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        if self._speed is None or trainer.global_step % self._every:
            return
        now = self._speed.read()
        pl_module.log("loader/samples_per_s", now["samples_per_s"], on_step=True, on_epoch=False)
        pl_module.log("loader/waited_share", now["waited_share"], on_step=True, on_epoch=False, prog_bar=self._prog_bar)
