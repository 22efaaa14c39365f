# SPDX-License-Identifier: Apache-2.0
"""A pipeline as a model of Triton's Python backend. Imported by the `model.py` of a model or of a backend."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from . import repository, signature

_MOST_ERRORS = 1000  # errors in the pipeline's list after which it is recreated, for long-running servers


class TritonPythonModel:
    """Called by the Python backend. One call of `execute` has the requests of one batch."""

    @staticmethod
    def auto_complete_config(auto_complete_model_config: Any) -> Any:
        folder = _version_folder()
        if folder is not None:
            signature.complete(auto_complete_model_config, lambda: repository.open_pipeline(folder))
        return auto_complete_model_config

    def initialize(self, args: dict[str, str]) -> None:
        import triton_python_backend_utils as backend  # exists only in the process of a model

        self._backend = backend
        config = json.loads(args["model_config"])
        self._folder = Path(args["model_repository"]) / str(args["model_version"])
        self._batched = config["max_batch_size"] > 0
        self._changed: dict[str, Any] = {"batch_size": max(config["max_batch_size"], 1)}
        threads = config.get("parameters", {}).get("num_threads", {}).get("string_value")
        if threads:
            self._changed["num_threads"] = int(threads)
        if args.get("model_instance_kind") == "GPU":
            self._changed["device_id"] = int(args["model_instance_device_id"])
        self._outputs = [x["name"] for x in config["output"]]
        self._open()
        if len(self._outputs) != self._pipe.num_outputs:
            raise ValueError(
                f"config.pbtxt of {args['model_name']} has {len(self._outputs)} outputs, its pipeline "
                f"{self._pipe.num_outputs}"
            )
        given = [x["name"] for x in config["input"]]
        missing = sorted(set(self._inputs) ^ set(given))
        if missing:
            raise ValueError(
                f"config.pbtxt of {args['model_name']} has the inputs {', '.join(given)}, its pipeline "
                f"{', '.join(self._inputs)}: those of external_sources by name="
            )

    def _open(self) -> None:
        self._pipe = repository.open_pipeline(self._folder, **self._changed)
        self._inputs = [x["name"] for x in signature.inputs_of(self._pipe)]

    def finalize(self) -> None:
        self._pipe.close()

    def execute(self, requests: list[Any]) -> list[Any]:
        try:
            return self._respond(requests)
        except Exception as e:
            # If the pipeline rejects a whole request, the others are processed separately.
            if len(requests) > 1:
                return [self.execute([r])[0] for r in requests]
            return [self._error(str(e))]

    def _error(self, text: str) -> Any:
        return self._backend.InferenceResponse(error=self._backend.TritonError(text))

    def _respond(self, requests: list[Any]) -> list[Any]:
        fed: dict[str, list[np.ndarray]] = {name: [] for name in self._inputs}
        ends = []
        for request in requests:
            for name, samples in fed.items():
                given = self._backend.get_input_tensor_by_name(request, name).as_numpy()
                samples.extend(_samples(given) if self._batched else [given])
            ends.append(len(samples))
        outputs = self._pipe.run(**fed)
        kept = self._pipe.sample_indices()
        row = np.full(ends[-1], -1)
        row[kept] = np.arange(len(kept))
        reasons = {} if len(kept) == len(row) else self._reasons()
        dense = [_Rows.of(o) for o in outputs]
        responses = []
        for begin, end in zip([0, *ends], ends):
            bad = np.flatnonzero(row[begin:end] < 0)
            if len(bad):
                responses.append(self._error("\n".join(self._told(reasons, begin, int(i)) for i in bad)))
                continue
            try:
                tensors = [
                    rows.tensor(self._backend, name, row[begin], row[begin] + end - begin, self._batched)
                    for name, rows in zip(self._outputs, dense)
                ]
            except ValueError as e:
                responses.append(self._error(str(e)))
            else:
                responses.append(self._backend.InferenceResponse(output_tensors=tensors))
        if len(reasons) and len(self._pipe.errors()) > _MOST_ERRORS:
            self._pipe.close()
            self._open()
        return responses

    def _reasons(self) -> dict[int, str]:
        """Reasons of bad samples of the last batch, by index."""
        errors = self._pipe.errors()
        return {e.sample: f"{e.operator}: {e.reason}" for e in errors if e.iteration == errors[-1].iteration}

    @staticmethod
    def _told(reasons: dict[int, str], begin: int, i: int) -> str:
        return f"sample {i} of the request: {reasons.get(begin + i, 'it could not be processed')}"


class _Rows:
    """One output of a batch. Each request gets its rows."""

    def __init__(self, output: Any, whole: Any):
        self.output, self.whole = output, whole

    @classmethod
    def of(cls, output: Any) -> _Rows:
        dense = len(output) > 0 and output.is_dense_tensor()
        if hasattr(output, "device_id"):
            return _RowsOnGPU(output, output.as_tensor() if dense else None)
        return cls(output, output.as_array() if dense else None)

    def tensor(self, backend: Any, name: str, begin: int, end: int, batched: bool) -> Any:
        return backend.Tensor(name, self._rows(name, begin, end) if batched else self.output.at(begin))

    def _rows(self, name: str, begin: int, end: int) -> np.ndarray:
        if self.whole is not None:
            return self.whole[begin:end]
        self._check(name, self.output.shape()[begin:end])
        return np.stack([self.output.at(i) for i in range(begin, end)])

    @staticmethod
    def _check(name: str, shapes: list[tuple[int, ...]]) -> None:
        if len(set(shapes)) > 1:
            raise ValueError(
                f"the samples of the request differ in their shapes of the output {name}: {shapes[0]} and "
                f"{next(s for s in shapes if s != shapes[0])}. Send them one by one, or resize or pad them in the "
                "pipeline"
            )


class _RowsOnGPU(_Rows):
    """Rows on the GPU are returned as views of the batch, by DLPack."""

    def tensor(self, backend: Any, name: str, begin: int, end: int, batched: bool) -> Any:
        from ...tensors import TensorGPU

        if self.whole is None:
            if end - begin > 1:
                self._check(name, self.output.shape()[begin:end])
                raise ValueError(
                    f"the output {name} lies on the GPU and has samples of several shapes in one batch; send them one "
                    "by one, or resize or pad them in the pipeline"
                )
            view = _View(self.output[int(begin)], 0, 1)
            view.shape = (1, *self.output.shape()[begin]) if batched else tuple(self.output.shape()[begin])
        else:
            view = _View(self.whole, int(begin), int(end))
            view.shape = view.shape if batched else view.shape[1:]
        return backend.Tensor.from_dlpack(name, TensorGPU(view))


class _View:
    """A range of rows of an array in GPU memory."""

    def __init__(self, whole: Any, begin: int, end: int):
        self._whole, self._array = whole, whole.__cuda_array_interface__
        size = np.dtype(self._array["typestr"]).itemsize
        self._offset = begin * int(np.prod(self._array["shape"][1:], dtype=np.int64)) * size
        self.shape = (end - begin, *self._array["shape"][1:])

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        address, read_only = self._array["data"]
        return {**self._array, "data": (address + self._offset, read_only), "shape": self.shape}


def _samples(batch: np.ndarray) -> list[np.ndarray]:
    """The samples of a request. Byte strings are encoded data of individual lengths."""
    if batch.dtype == object:
        return [np.frombuffer(x, np.uint8) for x in batch.reshape(-1)]
    return list(batch)


def _version_folder() -> Path | None:
    """The folder of this process's version of the model. `auto_complete_config` does not get it, but the backend passes
    the model's path as an argument to the process."""
    try:
        arguments = Path("/proc/self/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return Path(os.fsdecode(arguments[1])).parent if len(arguments) > 1 else None
