# SPDX-License-Identifier: Apache-2.0
"""JAX iterators over several devices of one process and of two, on forced CPU devices. Each test runs in separate
processes, as JAX counts its devices only once."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytest.importorskip("clu")

HERE = Path(__file__).parent


def environment(n_devices):
    return os.environ | {
        "XLA_FLAGS": f"--xla_force_host_platform_device_count={n_devices}",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(HERE.parents[1] / "src"),
    }


def test_four_devices():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"]
    command += ["-o", "addopts=", str(HERE / "on_four_devices.py")]
    out = subprocess.run(command, env=environment(4), capture_output=True, text=True)
    assert out.returncode == 0 and " passed" in out.stdout, out.stdout


def test_two_processes(tmp_path):
    """Two processes with two devices each: every process reads half of the shards, and a sum over the batch spans
    both."""
    (tmp_path / "class").mkdir()
    for i in range(16):
        (tmp_path / "class" / f"{i:02d}.jpg").write_bytes(bytes([i] * 4))
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    command = [sys.executable, str(HERE / "two_processes.py")]
    processes = [
        subprocess.Popen([*command, str(rank), str(port), str(tmp_path)], env=environment(2), text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in range(2)
    ]  # fmt: skip
    try:
        results = [p.communicate(timeout=120) for p in processes]
    finally:
        for p in processes:
            p.kill()
    assert all("done" in out for out, _ in results), "\n".join(err[-2000:] for _, err in results)
