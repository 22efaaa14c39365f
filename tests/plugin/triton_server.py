# SPDX-License-Identifier: Apache-2.0
"""The real Triton server for tests, from the wheel nvidia-pytriton, which runs without a GPU."""

import http.client
import importlib.util
import json
import os
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np

_TYPES = {"UINT8": np.uint8, "FP32": np.float32, "INT32": np.int32}


def folder() -> Path | None:
    """The server's folder: in the virtual environment $PENSTOCK_TRITON (the package needs NumPy < 2), or installed."""
    named = os.environ.get("PENSTOCK_TRITON")
    if named:
        return next(Path(named).glob("lib/python*/site-packages/pytriton/tritonserver"), None)
    spec = importlib.util.find_spec("pytriton")
    return Path(spec.origin).parent / "tritonserver" if spec and spec.origin else None


def backends(place: Path, target: Path) -> Path:
    """A folder of backends with the Python backend for this interpreter."""
    shutil.copytree(place / "backends" / "python", target / "python")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    stub = "triton_python_backend_stub"
    shutil.copy(place / "python_backend_stubs" / version / stub, target / "python" / stub)
    return target


@contextmanager
def serving(place: Path, models: Path, backend_folder: Path):
    """Runs the server until the block ends. Yields its port."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [place / "bin" / "tritonserver", "--model-repository", models, "--backend-directory", backend_folder]
    command += ["--http-address", "127.0.0.1", "--http-port", str(port), "--allow-grpc", "false"]
    command += ["--allow-metrics", "false", "--exit-timeout-secs", "5"]
    libraries = [place / "lib", *place.parents[1].glob("nvidia_pytriton.libs"), Path(sys.base_prefix) / "lib"]
    env = dict(os.environ)
    env["LD_LIBRARY_PATH"] = ":".join(map(str, libraries))
    # Its Python finds NumPy through the first python3 of PATH, not through PYTHONPATH.
    env["PATH"] = f"{place.parents[4] / 'bin'}:{env['PATH']}"
    log = models.parent / "server.log"
    with log.open("w") as out, subprocess.Popen(command, env=env, stdout=out, stderr=out) as server:
        try:
            until = time.monotonic() + 60
            while not _ready(port):
                assert server.poll() is None and time.monotonic() < until, log.read_text()[-4000:]
                time.sleep(0.1)
            yield port
        finally:
            server.terminate()
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()


def _ready(port: int) -> bool:
    try:
        return get(port, "/v2/health/ready")[0] == 200
    except OSError:
        return False


def get(port: int, path: str) -> tuple[int, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


class Refused(Exception):
    """The server answered with an error."""


class Client:
    """One connection for consecutive requests."""

    def __init__(self, port: int):
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def infer(self, model: str, name: str, data: np.ndarray, datatype: str = "UINT8") -> np.ndarray:
        """The first output for one input."""
        size = {"binary_data_size": data.nbytes}
        inputs = [{"name": name, "shape": data.shape, "datatype": datatype, "parameters": size}]
        head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
        headers = {"Inference-Header-Content-Length": str(len(head))}
        self.connection.request("POST", f"/v2/models/{model}/infer", head + data.tobytes(), headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise Refused(json.loads(body)["error"])
        n = int(answer.headers["Inference-Header-Content-Length"])
        output = json.loads(body[:n])["outputs"][0]
        data = body[n : n + output["parameters"]["binary_data_size"]]
        return np.frombuffer(data, _TYPES[output["datatype"]]).reshape(output["shape"])
