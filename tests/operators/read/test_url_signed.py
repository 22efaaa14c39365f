# SPDX-License-Identifier: Apache-2.0
"""Objects of buckets and of https:// servers read by native code: by signed URLs, and with TLS. Requests of native code
are told by their User-Agent."""

import threading
import time
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from urllib.parse import quote, urlsplit

import numpy as np
import pytest
from test_by_url import shards
from test_url_clouds import environment, service_account  # noqa: F401
from test_url_security import with_tls

from cloud_servers import AmazonServer, AzureServer, GoogleServer
from object_server import serving, some_fail
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import object_stores, request_limits, storage, store_options

pytestmark = needs("obstore")
KEYS = {"access_key_id": "AKIA", "secret_access_key": "a-secret-key", "region": "us-east-1"}
N = 60
WRONG = b"<Error><Code>SignatureDoesNotMatch</Code></Error>"


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(request_limits, "DEFAULT", request_limits.RequestLimits(read_s=1, hedge_s=0))
    storage._connections.clear()


@pytest.fixture
def server():
    rng = np.random.default_rng(0)
    with serving({f"bucket/{i}": rng.bytes(3000 + 70_000 * (i % 3)) for i in range(N)}, AmazonServer) as s:
        yield s


@pytest.fixture(params=["bucket", "https", "bucket with TLS"])
def place(request, server, tmp_path, monkeypatch):
    """The URL of the objects, and storage options."""
    at = server.url
    if request.param != "bucket":
        file, at = with_tls(server, tmp_path)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
    if request.param == "https":
        return f"{at}/bucket", {}
    return "s3://bucket", {**KEYS, "endpoint": at}


def build(at, options, names=range(N), batch_size=6, **arguments):
    @pipeline_def(batch_size=batch_size, num_threads=2, storage_options=options, **arguments)
    def pipe():
        return fn.readers.file(files=[f"{at}/{name}" for name in names])[0]

    return pipe()


def contents(pipe, n):
    return [bytes(x) for _ in range(n) for x in (lambda b: [b.at(i) for i in range(len(b))])(pipe.run()[0])]


def of_native_code(server):
    return [h.get("User-Agent") == "penstock" for h in server.seen]


@pytest.fixture
def not_by_client(monkeypatch):
    """The store's own client must not be asked."""

    def get(*_):
        raise AssertionError("obstore was asked")

    monkeypatch.setattr(object_stores.Stores, "get", get)


def test_native_code_reads(server, place, not_by_client):
    assert contents(build(*place), 20) == 2 * list(server.objects.values())
    assert all(of_native_code(server)) and server.refused == 0


@pytest.mark.parametrize("kinds", [("503",), ("cut",), ("hangup",), ("garbled",), ("stall", "cut", "503", "hangup")])
def test_what_passes_is_tried_again(server, place, kinds, not_by_client):
    server.fault = some_fail(0.1, kinds)
    pipe = build(*place)
    assert contents(pipe, 20) == 2 * list(server.objects.values()), "each once and in order"
    counted = pipe.stats()["remote"]
    assert counted["retries"] > 0 and counted["failed"] == 0


def test_a_second_request_for_stragglers(server, place, monkeypatch, not_by_client):
    monkeypatch.setattr(request_limits, "DEFAULT", request_limits.RequestLimits(read_s=20, hedge_s=0.2))
    server.fault = lambda path, number: "late" if path == "bucket/2" and number == 1 else None
    pipe = build(*place)
    begin = time.monotonic()
    assert contents(pipe, 1) == list(server.objects.values())[:6]
    assert time.monotonic() - begin < 10 and pipe.stats()["remote"]["hedged"] >= 1


def test_urls_of_a_batch_are_signed_together(server, monkeypatch):
    batches, sign = [], object_stores.Stores.signed

    def signed(self, urls):
        batches.append(list(urls))
        return sign(self, urls)

    monkeypatch.setattr(object_stores.Stores, "signed", signed)
    pipe = build("s3://bucket", {**KEYS, "endpoint": server.url}, batch_size=20)
    assert contents(pipe, 3 * 4) == 4 * list(server.objects.values())
    names = [f"s3://bucket/{i}" for i in range(N)]
    assert sorted(sum(batches, [])) == sorted(names), "each once, as the URLs are kept"
    assert len(batches) <= 3, "a call for each batch"


def test_records_of_an_object_have_one_url(server, tmp_path, monkeypatch):
    signed, sign = [], object_stores.Stores.signed
    monkeypatch.setattr(object_stores.Stores, "signed", lambda s, urls: (signed.extend(urls), sign(s, urls))[1])
    shards(tmp_path / "data")
    server.put_folder(tmp_path / "data", "bucket")
    paths = [f"s3://bucket/{i}.tar" for i in range(3)]

    @pipeline_def(batch_size=4, num_threads=2, storage_options={**KEYS, "endpoint": server.url})
    def pipe():
        return fn.readers.webdataset(paths=paths, ext=["jpg"], random_shuffle=True)

    built = pipe()
    for _ in range(30):
        built.run()
    assert sorted(signed) == paths


@pytest.mark.parametrize("status", ["403", "500", "400"])
def test_a_server_that_takes_no_signed_urls(server, status):
    """For a minute its objects are left to the store's own client; each that was refused has arrived, too."""
    server.secrets, server.status_of_refusals = {}, int(status)
    pipe = build("s3://bucket", {**KEYS, "endpoint": server.url})
    assert contents(pipe, 20) == 2 * list(server.objects.values())
    assert pipe.stats()["remote"]["retries"] == 0
    assert 0 < sum(of_native_code(server)) <= N / 2, "those on the way when the first was refused"


def test_an_object_that_nobody_may_read(server):
    """It is an error of its sample; the others are still read by native code."""
    server.fault = lambda path, number: "403" if path == "bucket/3" else None
    pipe = build("s3://bucket", {**KEYS, "endpoint": server.url}, on_error="skip")
    wanted = [x for i, x in enumerate(server.objects.values()) if i != 3]
    assert contents(pipe, 20) == 2 * wanted
    asked = server.asked["bucket/3"]
    assert "403" in str(pipe.errors()[0])
    # By both clients, unless the first has just asked for the next epoch.
    assert asked - 1 <= of_native_code(server).count(False) * 2 <= asked


def test_expired_credentials_are_renewed(server, monkeypatch):
    """URLs signed by them are refused; the store's client reads the objects by new ones, which then sign."""
    current, complete = {"access_key_id": "AKIA", "secret_access_key": "a-secret-key"}, store_options.complete

    def provide():
        return {**current, "token": None, "expires_at": datetime.now(timezone.utc) + timedelta(seconds=1)}

    def completed(url, options):
        base, options, is_plain = complete(url, options)
        return base, {**options, "credential_provider": provide}, is_plain

    monkeypatch.setattr(store_options, "complete", completed)
    pipe = build("s3://bucket", {"endpoint": server.url, "region": "us-east-1"}, batch_size=N, prefetch_queue_depth=1)
    everything = list(server.objects.values())
    assert contents(pipe, 2) == 2 * everything and all(of_native_code(server))
    current.update(access_key_id="NEW", secret_access_key="another-key")
    server.secrets = {"NEW": "another-key"}
    assert contents(pipe, 4) == 4 * everything
    assert pipe.stats()["remote"]["failed"] == 0 and not all(of_native_code(server))


def request_for(url):
    """As a server gets it."""
    parts = urlsplit(url)
    return SimpleNamespace(command="GET", path=f"{parts.path}?{parts.query}", headers={"host": parts.netloc})


NAMES = ["x", "d/e-f_g.1~h/i.JPG", "a b/ü#1.jpg", "c/100% + d~e=f&g.jpg"]


@pytest.mark.parametrize("name", NAMES)
def test_signatures_for_amazon(name):
    stores = object_stores.Stores({**KEYS, "session_token": "t"}, request_limits.DEFAULT)
    (url,) = stores.signed([f"s3://bucket/{name}"]).urls
    assert url.startswith(f"https://s3.us-east-1.amazonaws.com/bucket/{quote(name)}?")
    with serving(kind=AmazonServer) as server:
        assert server.refusal(request_for(url)) is None
        assert server.refusal(request_for(url.replace("bucket/", "bucket2/"))) == (403, WRONG)


@pytest.mark.parametrize("name", NAMES)
def test_signatures_for_google(name, tmp_path):
    with serving(kind=GoogleServer) as server:
        stores = object_stores.Stores({"service_account": service_account(server, tmp_path)}, request_limits.DEFAULT)
        (url,) = stores.signed([f"gs://bucket/{name}"]).urls
        if name not in NAMES[:2]:
            assert url == "", "obstore's would be wrong"
            return
        assert url.startswith(f"https://storage.googleapis.com/bucket/{quote(name)}?")
        assert server.refusal(request_for(url)) is None
        assert server.refusal(request_for(url.replace("bucket/", "bucket2/")))[0] == 403


@pytest.mark.parametrize("name", NAMES)
def test_signatures_for_azure(name):
    with serving(kind=AzureServer) as server:
        options = {"account_name": server.account, "account_key": server.key}
        (url,) = object_stores.Stores(options, request_limits.DEFAULT).signed([f"az://bucket/{name}"]).urls
        if name not in NAMES[:2]:
            assert url == "", "obstore's would be wrong"
            return
        assert url.startswith(f"https://{server.account}.blob.core.windows.net/bucket/{quote(name)}?")
        assert server.refusal(request_for(url)) is None
        assert server.refusal(request_for(url.replace("bucket/", "bucket2/")))[0] == 403


# Options of buckets that need no credentials, or have a signature for all objects; and the beginning of the URLs.
PUBLIC = {
    "amazon": ("s3", {"skip_signature": True, "region": "eu-west-1"}, "https://s3.eu-west-1.amazonaws.com/bucket/"),
    "amazon, virtual": (
        *("s3", {"skip_signature": "true", "virtual_hosted_style_request": True, "region": "eu-west-1"}),
        "https://bucket.s3.eu-west-1.amazonaws.com/",
    ),
    "google": ("gs", {"skip_signature": True}, "https://storage.googleapis.com/bucket/"),
    "azure": ("az", {"account_name": "a", "skip_signature": True}, "https://a.blob.core.windows.net/bucket/"),
    "azure, signature": ("az", {"account_name": "a", "sas_key": "sig=x"}, "https://a.blob.core.windows.net/bucket/"),
}


@pytest.mark.parametrize("case", PUBLIC)
@pytest.mark.parametrize("name", NAMES)
def test_public_buckets(case, name):
    scheme, options, begin = PUBLIC[case]
    (url,) = object_stores.Stores(options, request_limits.DEFAULT).signed([f"{scheme}://bucket/{name}"]).urls
    assert url == f"{begin}{quote(name)}" + ("?sig=x" if "sas_key" in options else "")


def test_one_odd_name_spoils_no_others(server):
    at, options = "s3://bucket", {**KEYS, "endpoint": server.url}
    pipe = build(at, options, names=[1, "a/../2", "//3", 4], batch_size=4, on_error="skip")
    assert contents(pipe, 1) == [server.objects["bucket/1"], server.objects["bucket/4"]]
    assert of_native_code(server).count(True) >= 2


@pytest.mark.parametrize("option", [{"s3_express": "true"}, {"sse_customer_encryption_key_base64": "a2V5" * 11}])
def test_what_a_url_can_not_say(server, option):
    """These requests need headers."""
    stores = object_stores.Stores({**KEYS, "endpoint": server.url, **option}, request_limits.DEFAULT)
    assert stores.signed(["s3://bucket/1", "s3://bucket/2"]).urls == ["", ""]


def test_many_objects_and_threads(server, not_by_client):
    """More objects than URLs are kept (8192), read by several pipelines at once."""
    server.objects = {f"bucket/{i}": b"%d" % i for i in range(20_000)}
    # With more requests at once, the server's threads would take most of the time from each other.
    options = {**KEYS, "endpoint": server.url, "requests_at_once": 16}
    pipes = [build("s3://bucket", options, names=range(i, 20_000, 8), batch_size=250) for i in range(4)]
    got = {}

    def run(i):
        got[i] = contents(pipes[i], 9)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert got == {i: [b"%d" % k for k in range(i, 20_000, 8)[: 9 * 250]] for i in range(4)}
    assert len(server.asked) > 8192
