# SPDX-License-Identifier: Apache-2.0
"""Options and the cache in debug mode and in the imperative mode: the same as in a pipeline."""

import numpy as np
import pytest

import penstock.experimental.dynamic as ndd
from object_server import serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import storage

pytestmark = needs("obstore")
# Nothing is requested twice, however late responses are.
PATIENT = {"hedge_after": None, "client_options": {"read_timeout": "900s", "timeout": "900s"}}
OPTIONS = {"headers": {"x-token": "a-secret"}, **PATIENT}


@pytest.fixture
def server():
    rng = np.random.default_rng(0)
    storage._connections.clear()
    with serving({f"d/{i}": rng.bytes(3000 + 7 * i) for i in range(6)}) as s:
        yield s


def urls(server):
    return [f"{server.url}/{path}" for path in server.objects]


def test_debug_mode(server, tmp_path):
    @pipeline_def(batch_size=6, num_threads=2, debug=True, storage_options=OPTIONS, cache=tmp_path / "cache")
    def pipe():
        return fn.readers.file(files=urls(server))[0]

    built = pipe()
    for _ in range(3):
        batch = built.run()[0]
        assert [bytes(batch.at(i)) for i in range(6)] == list(server.objects.values())
    assert all(h.get("x-token") == "a-secret" for h in server.seen)
    assert len(server.seen) == 6, "later epochs ask for nothing"


def test_imperative_mode(server, tmp_path):
    reader = ndd.readers.File(
        files=urls(server), storage_options=OPTIONS, cache=tmp_path / "cache", cache_bytes=1 << 20
    )
    for _ in range(3):
        got = [bytes(np.asarray(x)) for x, _ in reader.next_epoch()]
        assert got == list(server.objects.values())
    assert all(h.get("x-token") == "a-secret" for h in server.seen)
    assert len(server.seen) == 6 and "a-secret" not in repr(reader) + reader.get_state()


def test_arguments(server):
    with pytest.raises(TypeError, match="storage_options takes a dictionary; got str"):
        ndd.readers.File(files=urls(server), storage_options="x")
    with pytest.raises(ValueError, match="cache_bytes takes a positive integer, and a folder in 'cache'"):
        ndd.readers.File(files=urls(server), cache_bytes=5)
