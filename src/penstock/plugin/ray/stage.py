# SPDX-License-Identifier: Apache-2.0
"""Pipelines as stages of Ray datasets."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ...pipeline import Pipeline, serialization
from .sharing import OPENED, column_of, defined, imported, names_of, pickled, warn


class Stage:
    """Runs a pipeline in `Dataset.map_batches`: columns of a batch are fed to its inputs, and its outputs are columns.

    `fn.external_source(name=...)` without a source is an input. It takes the column of its name: arrays, or bytes, as
    from `ray.data.read_binary_files`, which are passed as uint8. Samples may differ in shape. Columns that no input
    takes are kept. If a batch of Ray is larger than the pipeline's `batch_size`, it is processed in parts.

    Parameters
    ----------
    pipeline
        A Pipeline, or a function made by `pipeline_def`, called with `arguments`. With operators on a GPU it needs
        `num_gpus=1` of `map_batches`; outputs are copied to the CPU.
    output_names
        The columns, one name for each output. By default output_0, output_1 and so on.
    input_columns
        The columns of inputs whose names differ from theirs: {input: column}.
    num_threads
        Number of native threads; `num_cpus` of `map_batches` should be the same.

    With `on_error="skip"`, rows of bad samples are omitted, with a warning in the log. Each process has its own seed,
    so random numbers are not reproducible here; `read_penstock` reproduces them. Raises ValueError for columns that are
    missing or would be written twice.

    >>> import ray
    >>> from penstock import fn, pipeline_def
    >>> from penstock.plugin.ray import Stage
    >>> @pipeline_def(batch_size=16)
    ... def decode():
    ...     return fn.resize(fn.decoders.image(fn.external_source(name="bytes")), size=(64, 64))
    >>> ds = ray.data.read_binary_files("examples/data", include_paths=True, file_extensions=["jpg"])
    >>> ds = ds.map_batches(Stage(decode, output_names=["image"]), batch_format="numpy", batch_size=16)
    >>> batch = ds.take_batch(4)
    >>> sorted(batch), batch["image"].shape
    (['image', 'path'], (4, 64, 64, 3))
    """

    def __init__(
        self,
        pipeline: Pipeline | Callable[..., Pipeline],
        *,
        output_names: Sequence[str] | None = None,
        input_columns: Mapping[str, str] | None = None,
        num_threads: int = 1,
        **arguments: Any,
    ):
        pipe = defined("Stage", pipeline, arguments)
        try:
            pipe.build()
            fed = [n.name for n in pipe.definition.nodes if getattr(n.op, "is_fed", bool)()]
            if not fed:
                raise ValueError(
                    "Stage: the pipeline has no inputs: those are external_sources without a source, "
                    "fn.external_source(name=...). A pipeline that reads by itself is for read_penstock"
                )
            strange = sorted(set(input_columns or {}) - set(fed))
            if strange:
                raise ValueError(f"Stage: input_columns names {strange}, but the inputs of the pipeline are {fed}")
            self._columns = {name: (input_columns or {}).get(name, name) for name in fed}
            self._names = names_of("Stage", output_names, pipe.num_outputs)
            functions: dict[str, Any] = {}
            content = serialization.content_of(pipe, functions)
            sites = [n.sites for n in pipe.definition.nodes]  # the user's source lines, for errors
        finally:
            pipe.close()
        content["arguments"] |= {"num_threads": num_threads, "seed": None}
        self._payload = pickled("Stage", (content, functions, sites))
        self.__name__ = "penstock.Stage"  # shown by Ray

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Processes a batch of columns."""
        if not isinstance(batch, Mapping):
            raise TypeError(
                f'Stage takes batches of NumPy arrays: map_batches(..., batch_format="numpy"); got '
                f"{type(batch).__name__}"
            )
        taken = set(self._columns.values())
        missing = sorted(taken - batch.keys())
        if missing:
            raise ValueError(
                f"Stage: the batch has no column {', '.join(map(repr, missing))}; it has {sorted(batch)}. Set the "
                "column of an input with input_columns={input: column}"
            )
        twice = sorted(set(self._names) & (batch.keys() - taken))
        if twice:
            raise ValueError(
                f"Stage: the batch has a column {', '.join(map(repr, twice))} already, and no input takes it; give the "
                "outputs other names by output_names, or drop_columns before"
            )
        fed = {name: _samples(column, batch[column]) for name, column in self._columns.items()}
        rest = {k: v for k, v in batch.items() if k not in taken}
        n = len(next(iter(fed.values())))
        with OPENED.lent(self._payload, _open_stage) as pipe:
            outputs, kept = _run(pipe, fed, n)
        if len(kept) < n:
            rest = {k: v[kept] for k, v in rest.items()}
        return {**rest, **{name: column_of(parts) for name, parts in zip(self._names, outputs)}}


def _open_stage(payload: bytes) -> Pipeline:
    content, functions, sites = imported("ray.cloudpickle").loads(payload)
    content["arguments"]["seed"] = int.from_bytes(os.urandom(4), "little") >> 1
    pipe = serialization.made_of(Pipeline, content, functions, {})
    for node, known in zip(pipe.definition.nodes, sites):
        node.sites = known
    pipe.build()
    return pipe


def _samples(column: str, values: Any) -> list[np.ndarray] | np.ndarray:
    """Converts a column to the data of an input."""
    if isinstance(values, np.ndarray) and values.dtype.kind not in "OSUM":
        return values
    samples = []
    for i, value in enumerate(values):
        if isinstance(value, (bytes, bytearray, memoryview)):
            value = np.frombuffer(value, np.uint8)
        if not isinstance(value, np.ndarray) or value.dtype.kind in "OSUM":
            raise TypeError(
                f"Stage: row {i} of the column {column!r} is {type(value).__name__}; an input takes bytes and arrays "
                "of numbers"
            )
        samples.append(value)
    return samples


def _run(pipe: Pipeline, fed: dict[str, Any], n: int) -> tuple[list[list[Any]], np.ndarray]:
    """The outputs of all parts of a batch, and the indices of the rows that are kept."""
    most = pipe.max_batch_size or n
    begins = range(0, n, most)
    for begin in begins:
        for name, samples in fed.items():
            pipe.feed_input(name, samples[begin : begin + most])
    outputs: list[list[Any]] = [[] for _ in range(pipe.num_outputs)]
    kept, known = [], len(pipe.errors())
    for begin in begins:
        for parts, made in zip(outputs, pipe.run()):
            parts.append(made.as_cpu())
        rows = pipe.sample_indices()
        assert rows is not None
        kept.append(rows + begin)
    warn(pipe.errors()[known:])
    return outputs, np.concatenate(kept) if kept else np.zeros(0, int)
