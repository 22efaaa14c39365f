# SPDX-License-Identifier: Apache-2.0
"""A model's inputs and outputs for Triton, and the text of config.pbtxt."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

import numpy as np

from ... import types

TRITON_TYPES = {
    "bool": "TYPE_BOOL",
    **{f"{u}int{n}": f"TYPE_{u.upper()}INT{n}" for u in ("", "u") for n in (8, 16, 32, 64)},
    **{f"float{n}": f"TYPE_FP{n}" for n in (16, 32, 64)},
}
# Two grey images, 24 x 16 and 40 x 32, as encoded data for trial batches. Common parts are stored once.
_HEAD = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP{0}2wBDAf{0}wAARCAA"
_TAIL = (
    "ASIAAhEBAxEB/8QAFAABAAAAAAAAAAAAAAAAAAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/xAAUAQEAAAAAAAAAAAAAAAAAAAAA/8QAFBEBAAAAAA"
    "AAAAAAAAAAAAAAAP/aAAwDAQACEQMRAD8AAAA{0}/9k="
)
_ONES = "/" * 86
_PICTURES = tuple(_HEAD.format(_ONES) + size + _TAIL.format("A" * n) for size, n in (("QABgD", 1), ("gACgD", 9)))
_SIDES = ((16, 24), (32, 40))  # sides of arrays in trial batches; further extents are 3


class UnknownSignature(ValueError):
    """The inputs or outputs of a pipeline can't be determined."""


def inputs_of(pipe: Any) -> list[dict[str, Any]]:
    """Inputs in the form of a model's configuration: each `external_source` without a source. Without dtype and ndim,
    an input takes encoded data: uint8, one dimension."""
    pipe.build()
    found = []
    for node in pipe.definition.nodes:
        is_fed = getattr(node.op, "is_fed", None)
        if is_fed is None or not is_fed():
            continue
        values = node.op.values
        dtype, ndim = values.get("dtype"), values.get("ndim")
        if isinstance(dtype, (list, tuple)) or isinstance(ndim, (list, tuple)) or values.get("num_outputs"):
            raise UnknownSignature(
                f"the external_source {node.name!r} has several outputs, which a model's input can't be; use one "
                "external_source for each"
            )
        name = "uint8" if dtype is None else np.dtype(types.to_numpy_type(dtype)).name
        dims = [-1] * (1 if ndim is None else int(ndim))
        if dims == [] or name not in TRITON_TYPES:
            dims = dims or [1]
        found.append({"name": node.name, "data_type": TRITON_TYPES[name], "dims": dims, "allow_ragged_batch": True})
    if not found:
        raise UnknownSignature(
            "the pipeline has no inputs: a model's are external_sources that are fed, fn.external_source(name=...)"
        )
    return found


def outputs_of(pipe: Any, inputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Outputs in the form of a model's configuration, named OUTPUT_0 and so on. What is not declared by `output_dtype`
    and `output_ndim` is determined by two trial batches: extents that differ become -1."""
    n = pipe.num_outputs
    dtypes, ndims = pipe.output_dtype(), pipe.output_ndim()
    seen: list[list[tuple[str, tuple[int, ...]]]] = []
    try:
        for i in range(2):
            made = pipe.run(**{x["name"]: [_trial(x, i)] for x in inputs})
            seen.append([(np.dtype(types.to_numpy_type(o.dtype)).name, o.shape()[0]) for o in made])
    except Exception as e:
        if any(d is None for d in (*dtypes, *ndims)):
            raise UnknownSignature(
                "the types and shapes of the outputs are not known, as a trial batch of made-up inputs failed: "
                f"{e}\nDeclare them: @pipeline_def(output_dtype=[...], output_ndim=[...])"
            ) from e
        seen = []
    found = []
    for i in range(n):
        if seen:
            dtype, a, b = seen[0][i][0], seen[0][i][1], seen[1][i][1]
            dims = [x if x == y else -1 for x, y in zip(a, b)] if len(a) == len(b) else [-1] * len(a)
        else:
            dtype, dims = np.dtype(types.to_numpy_type(dtypes[i])).name, [-1] * int(ndims[i])
        found.append({"name": f"OUTPUT_{i}", "data_type": TRITON_TYPES[dtype], "dims": dims or [1]})
    return found


def _trial(spec: dict[str, Any], i: int) -> np.ndarray:
    """A sample of artificial data for an input."""
    dtype = next(k for k, v in TRITON_TYPES.items() if v == spec["data_type"])
    if len(spec["dims"]) == 1 and dtype == "uint8":
        return np.frombuffer(base64.b64decode(_PICTURES[i]), np.uint8)
    return np.zeros((_SIDES[i] + (3,) * 9)[: len(spec["dims"])], dtype)


def complete(config: Any, open_pipeline: Callable[[], Any], batch_size: int | None = None) -> None:
    """Adds missing entries to a `ModelConfig` of Triton: inputs, outputs, batching."""
    said = config.as_dict()
    pipe = open_pipeline()
    try:
        if not said.get("max_batch_size"):
            config.set_max_batch_size(batch_size or pipe.max_batch_size)
        inputs = inputs_of(pipe)
        known = {x["name"]: x for x in said["input"]}
        for spec in inputs:
            if not known.get(spec["name"], {}).get("dims"):
                config.add_input({k: spec[k] for k in ("name", "data_type", "dims")})
        for x in said["input"]:
            x["allow_ragged_batch"] = True  # ModelConfig has no method for it
        if not all(x.get("dims") for x in said["output"]) or not said["output"]:
            names = [x["name"] for x in said["output"]]
            for i, spec in enumerate(outputs_of(pipe, inputs)):
                config.add_output({**spec, "name": names[i] if i < len(names) else spec["name"]})
        if not {"sequence_batching", "ensemble_scheduling"} & said.keys():
            config.set_dynamic_batching()
    finally:
        pipe.close()


def text(
    name: str, backend: str, max_batch_size: int, inputs: list[dict[str, Any]], outputs: list[dict[str, Any]]
) -> str:
    """The text of a config.pbtxt."""
    lines = [f'name: "{name}"', f'backend: "{backend}"', f"max_batch_size: {max_batch_size}"]
    for kind, specs in (("input", inputs), ("output", outputs)):
        for s in specs:
            dims = ", ".join(map(str, s["dims"]))
            ragged = ", allow_ragged_batch: true" if s.get("allow_ragged_batch") else ""
            lines.append(f'{kind} {{ name: "{s["name"]}", data_type: {s["data_type"]}, dims: [ {dims} ]{ragged} }}')
    return "\n".join([*lines, "dynamic_batching { }", ""])
