# SPDX-License-Identifier: Apache-2.0
"""Folders of models and backends: written here, and read by the server."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path
from typing import Any

from ...pipeline import Pipeline
from . import signature

# Files searched in the folder of a version, in this order; .py files contain a pipeline with @autoserialize.
FILES = ("model.penstock", "pipeline.py", "model.dali", "dali.py")

_MODEL = """\
# Written by `penstock triton`.
import sys

try:
    import penstock
except ImportError:  # the server's Python does not find what is installed where this was written
    sys.path.append({place!r})
{compatible}from penstock.plugin.triton.serving import TritonPythonModel
"""
_AS_DALI = "import penstock.as_dali  # models for the DALI backend import nvidia.dali\n"


def model_file(as_dali: bool = False) -> str:
    """The text of a `model.py`."""
    place = str(Path(__file__).resolve().parents[3])
    return _MODEL.format(place=place, compatible=_AS_DALI if as_dali else "")


def marked(module: Any) -> Any:
    """The function with @autoserialize in a module, or otherwise the one with @pipeline_def."""
    for mark in ("_is_autoserialize", "_is_pipeline_def"):
        found = list({id(v): v for _, v in inspect.getmembers(module) if getattr(v, mark, False) is True}.values())
        if len(found) == 1:
            return found[0]
        if found:
            break
    raise ValueError(
        f"{getattr(module, '__file__', module)} has {len(found)} pipelines; a model is one. Mark it with "
        "@autoserialize of penstock.plugin.triton"
    )


def load_module(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(f"penstock_model_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    sys.path.insert(0, str(path.parent))
    spec.loader.exec_module(module)
    return module


def open_pipeline(folder: Path, **changed: Any) -> Any:
    """The pipeline of a version of a model, for serving: bad samples are omitted and reported, and batches are not
    prefetched, as each consists of requests."""
    changed = {"on_error": "skip", "max_errors": None, "prefetch_queue_depth": 1, **changed}
    for path in (folder / name for name in FILES):
        if not path.exists():
            continue
        if path.suffix == ".py":
            pipe = marked(load_module(path))(**changed)
        else:
            pipe = Pipeline.deserialize(filename=path, import_functions=True, **changed)
        pipe.build()
        return pipe
    raise FileNotFoundError(f"{folder} has no pipeline: none of {', '.join(FILES)}")


def export(pipe: Any, repository: Path, name: str, backend: str = "python", version: int = 1) -> Path:
    """Writes a model: its configuration and the serialised pipeline, and for the "python" backend a `model.py`."""
    inputs = signature.inputs_of(pipe)
    content = pipe.serialize()
    try:
        trial = Pipeline.deserialize(content, on_error="raise", prefetch_queue_depth=1)
    except ValueError as e:
        raise ValueError(
            f"the pipeline calls functions of yours, which a server does not have: {e}\nPut the program itself into "
            f"the folder of the version, as pipeline.py with @autoserialize"
        ) from None
    try:
        outputs = signature.outputs_of(trial, inputs)
    finally:
        trial.close()
    folder = repository / name / str(version)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.penstock").write_bytes(content)
    if backend == "python":
        (folder / "model.py").write_text(model_file())
    text = signature.text(name, backend, pipe.max_batch_size, inputs, outputs)
    (repository / name / "config.pbtxt").write_text(text)
    return repository / name


def install_backends(backends: Path) -> list[Path]:
    """Writes the backends "penstock" and "dali" into a server's folder of backends, beside "python"."""
    written = []
    for name in ("penstock", "dali"):
        (backends / name).mkdir(parents=True, exist_ok=True)
        path = backends / name / "model.py"
        path.write_text(model_file(as_dali=name == "dali"))
        written.append(path)
    return written
