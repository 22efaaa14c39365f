# SPDX-License-Identifier: Apache-2.0
"""Models for Triton without a server: the exported files, and the backend's calls, made by a mock server."""

import io
import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from penstock import fn, pipeline_def, types
from penstock.cli import main
from penstock.plugin.triton import autoserialize, repository, signature
from penstock.plugin.triton.serving import TritonPythonModel

PROGRAM = """
from penstock import fn, pipeline_def, types

@pipeline_def(batch_size=8, num_threads=1, device_id=None)
def pipe():
    x = fn.external_source(name="DATA", dtype=types.UINT8, ndim=1)
    return fn.resize(fn.decoders.image(x, output_type=types.GRAY), resize_x=32, resize_y=20)
"""


@autoserialize
@pipeline_def(batch_size=8, num_threads=1, device_id=None)
def decoded():
    return fn.decoders.image(fn.external_source(name="DATA"), output_type=types.RGB)


def png(value: int, h: int = 4, w: int = 6) -> bytes:
    out = io.BytesIO()
    Image.fromarray(np.full((h, w, 3), value, np.uint8)).save(out, "PNG")
    return out.getvalue()


@pytest.fixture
def model(tmp_path, monkeypatch):
    """A loaded model, and a function that sends it requests: arrays, each the input of one request."""
    backend = SimpleNamespace(
        get_input_tensor_by_name=lambda request, name: SimpleNamespace(as_numpy=lambda: request[name]),
        InferenceResponse=lambda output_tensors=None, error=None: error or output_tensors[0],
        TritonError=RuntimeError,
        Tensor=lambda name, array: np.array(array),
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    repository.export(decoded(), tmp_path, "m")
    made = TritonPythonModel()
    config = {"max_batch_size": 8, "input": [{"name": "DATA"}], "output": [{"name": "OUTPUT_0"}]}
    where = {"model_repository": str(tmp_path / "m"), "model_version": "1", "model_name": "m"}
    made.initialize({"model_config": json.dumps(config), **where})
    yield lambda *rows: made.execute([{"DATA": r} for r in rows])
    made.finalize()


def one(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)[None]


def test_export_by_the_command(tmp_path, capsys):
    (tmp_path / "small.py").write_text(PROGRAM)
    assert main(["triton", "export", str(tmp_path / "small.py"), "--repository", str(tmp_path / "models")]) == 0
    text = (tmp_path / "models" / "small" / "config.pbtxt").read_text()
    assert text == capsys.readouterr().out
    assert 'name: "small"\nbackend: "python"\nmax_batch_size: 8\n' in text
    assert 'name: "DATA", data_type: TYPE_UINT8, dims: [ -1 ], allow_ragged_batch: true' in text
    assert "data_type: TYPE_UINT8, dims: [ 20, 32, 1 ]" in text
    assert "dynamic_batching" in text
    assert sorted(p.name for p in (tmp_path / "models" / "small" / "1").iterdir()) == ["model.penstock", "model.py"]


def test_export_of_what_is_not_there(tmp_path, capsys):
    assert main(["triton", "export", str(tmp_path / "no.py"), "--repository", str(tmp_path)]) == 2
    assert "there is no file" in capsys.readouterr().err


def test_backends_are_added(tmp_path):
    assert main(["triton", "backend", str(tmp_path)]) == 0
    assert "as_dali" in (tmp_path / "dali" / "model.py").read_text()
    assert "as_dali" not in (tmp_path / "penstock" / "model.py").read_text()


def test_sizes_that_differ_are_open():
    pipe = decoded()
    inputs = signature.inputs_of(pipe)
    assert signature.outputs_of(pipe, inputs) == [{"name": "OUTPUT_0", "data_type": "TYPE_UINT8", "dims": [-1, -1, 3]}]


def test_a_pipeline_without_inputs():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def pipe():
        return fn.random.uniform()

    with pytest.raises(signature.UnknownSignature, match="no inputs"):
        signature.inputs_of(pipe())


def test_a_pipeline_that_nobody_serialised(tmp_path):
    (tmp_path / "model.dali").write_bytes(b"\x08\x04\x12")
    with pytest.raises(ValueError, match="not a pipeline serialised by DALI, or a damaged one"):
        repository.open_pipeline(tmp_path)


def test_a_folder_without_a_pipeline(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no pipeline"):
        repository.open_pipeline(tmp_path)


def test_requests_get_their_own_rows(model):
    """Also with different image sizes in one batch."""
    pair = np.stack([np.frombuffer(png(v), np.uint8) for v in (7, 9)])
    a, b, c = model(one(png(5)), pair, one(png(200, 9, 3)))
    assert a.shape == (1, 4, 6, 3) and (a == 5).all()
    assert b.shape == (2, 4, 6, 3) and (b[0] == 7).all() and (b[1] == 9).all()
    assert c.shape == (1, 9, 3, 3) and (c == 200).all()


def test_damage_is_an_error_of_its_request_alone(model):
    bad = one(png(5)[:20])
    a, b, c = model(one(png(5)), bad, one(png(7)))
    assert isinstance(b, RuntimeError) and "sample 0 of the request: " in str(b)
    assert a.shape == c.shape == (1, 4, 6, 3)  # all() of no rows is true
    assert (a == 5).all() and (c == 7).all()
    assert all(isinstance(r, RuntimeError) for r in model(bad, bad))
    (after,) = model(one(png(11)))
    assert after.shape == (1, 4, 6, 3) and (after == 11).all()


@autoserialize
@pipeline_def(batch_size=8, num_threads=1, device_id=0)
def brightened():
    x = fn.external_source(name="DATA", dtype=types.UINT8, ndim=3, layout="HWC")
    return fn.cast(x.gpu(), dtype=types.INT32) + 1000


def test_outputs_stay_on_the_gpu(tmp_path, monkeypatch):
    """Each request gets its rows of the batch on the GPU by DLPack, with the values of a NumPy reference."""
    taken = []

    def on_gpu(name, tensor):
        assert tensor.__dlpack_device__()[0] == 2  # CUDA
        taken.append(tensor.__cuda_array_interface__["data"][0])
        return np.array(tensor.as_cpu())

    backend = SimpleNamespace(
        get_input_tensor_by_name=lambda request, name: SimpleNamespace(as_numpy=lambda: request[name]),
        InferenceResponse=lambda output_tensors=None, error=None: error or output_tensors[0],
        TritonError=RuntimeError,
        Tensor=SimpleNamespace(from_dlpack=on_gpu),
    )
    monkeypatch.setitem(sys.modules, "triton_python_backend_utils", backend)
    repository.export(brightened(), tmp_path, "m")
    made = TritonPythonModel()
    config = {"max_batch_size": 8, "input": [{"name": "DATA"}], "output": [{"name": "OUTPUT_0"}]}
    where = {"model_repository": str(tmp_path / "m"), "model_version": "1", "model_name": "m"}
    kind = {"model_instance_kind": "GPU", "model_instance_device_id": "0"}
    made.initialize({"model_config": json.dumps(config), **where, **kind})
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 255, (n, 5, 7, 3), dtype=np.uint8) for n in (2, 1, 3)]
    for given, got in zip(rows, made.execute([{"DATA": r} for r in rows])):
        np.testing.assert_array_equal(got, given.astype(np.int32) + 1000)
    # Consecutive views of one batch: nothing was copied.
    assert np.diff(taken).tolist() == [2 * 5 * 7 * 3 * 4, 5 * 7 * 3 * 4]
    ragged = [rng.integers(0, 255, (1, h, 4, 3), dtype=np.uint8) for h in (2, 6)]
    for given, got in zip(ragged, made.execute([{"DATA": r} for r in ragged])):
        np.testing.assert_array_equal(got, given.astype(np.int32) + 1000)
    made.finalize()
