# SPDX-License-Identifier: Apache-2.0
"""Listings of folders in object stores: many pages, nested folders, and reuse from the cache."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest
from test_url_clouds import connection

import object_server
from cloud_servers import AzureServer, GoogleServer
from object_server import ObjectServer, serving
from optional_packages import needs
from penstock import fn, pipeline_def
from penstock.core import listings, storage

pytestmark = needs("obstore")
PATIENT = {"hedge_after": None, "client_options": {"read_timeout": "900s", "timeout": "900s"}}


@pytest.fixture
def server(monkeypatch):
    """Three folders of three pages each; small, as reading the objects takes longer than listing them."""
    storage._connections.clear()
    monkeypatch.setattr(object_server, "PAGE", 20)
    with serving({f"b/{c}/{i:03}.jpg": b"%s %d" % (c.encode(), i) for c in "xyz" for i in range(50)}) as s:
        yield s


def options(server, **more):
    return {"endpoint": server.url, "aws_skip_signature": "true", **PATIENT, **more}


def epoch(server, root="s3://b", n=150, cache=None, **more):
    """The contents and labels of an epoch."""

    @pipeline_def(batch_size=n, num_threads=2, storage_options=options(server, **more), cache=cache)
    def pipe():
        return fn.readers.file(file_root=root)

    storage._connections.clear()  # as another process would
    data, labels = pipe().run()
    return [bytes(np.asarray(data.at(i))) for i in range(n)], np.asarray(labels.as_array()).ravel().tolist()


def expected(server):
    return list(server.objects.values()), sorted([0, 1, 2] * 50)


def test_folders_of_many_pages(server):
    assert epoch(server) == expected(server)
    listed = [p for p, n in server.asked.items() if p in ("b", "b/")]
    assert sum(server.asked[p] for p in listed) == 1 + 3 * 3, "a request for a page of 20 keys"


@pytest.mark.parametrize("order", [1, -1], ids=["sorted", "unsorted"])
@pytest.mark.parametrize("starts_after", [True, False])
@pytest.mark.parametrize("server_class", [ObjectServer, GoogleServer, AzureServer])
def test_a_page_that_fails_is_asked_for_again(server_class, starts_after, order, monkeypatch):
    """Also from servers that restart the listing, and from servers without an order."""
    from penstock.core.object_stores import Stores

    pages = Stores.list_pages

    def ordered(self, *arguments):
        for names, sizes, tags, *rest in pages(self, *arguments):
            yield names[::order], sizes[::order], tags[::order], *rest

    monkeypatch.setattr(Stores, "list_pages", ordered)
    monkeypatch.setattr(listings, "_PER_PAGE", 100)  # so that there are pages before it
    storage._connections.clear()
    with serving({f"b/x/{i:03}": b"%d" % i for i in range(450)}, server_class) as server:
        failed, server.starts_after = [], starts_after

        def fault(path, number):
            if path.rstrip("/") == "b" and number in (2, 3, 4, 6):
                failed.append(path)
                return ("503", "cut", "hangup", "garbled")[len(failed) - 1]
            return None

        server.fault = fault
        url, how = {
            ObjectServer: ("s3://b/x", options(server)),
            GoogleServer: ("gs://b/x", {"base_url": server.url, "skip_signature": True}),
            AzureServer: ("az://b/x", {"connection_string": connection(server) if server_class is AzureServer else ""}),
        }[server_class]
        with storage.using(storage.StorageSettings.checked(how)):
            found = listings.objects_in(url)
        assert [n for page in found.pages() for n in page] == [b"%03d" % i for i in range(450)]
        assert found.sizes.tolist() == [len(b"%d" % i) for i in range(450)] and len(failed) == 4


def test_folders_and_markers_are_left_out(server):
    """Names in subfolders, and the empty objects that some tools create for folders."""
    server.objects = {"b/a": b"1", "b/x/": b"", "b/x/1": b"2", "b/x/deep/2": b"3", "b/x/3": b"4", "b/x-1": b"5"}
    with storage.using(storage.StorageSettings.checked(options(server))):
        assert [list(listings.objects_in(f"s3://b{at}").pages()) for at in ("", "/x", "/x/", "/none")] == [
            [[b"a", b"x-1"]],
            [[b"1", b"3"]],
            [[b"1", b"3"]],
            [],
        ]
        assert listings.folders_in("s3://b") == ["x"]


def test_a_folder_that_has_mostly_folders(server, monkeypatch):
    """Nested objects are not listed completely."""
    monkeypatch.setattr(listings, "_MOST_DEEPER", 10)
    monkeypatch.setattr(listings, "_PER_PAGE", 20)
    server.objects |= {"b/1": b"", "b/zz": b"12"}
    server.objects = dict(sorted(server.objects.items()))
    server.asked.clear()
    with storage.using(storage.StorageSettings.checked(options(server))):
        found = listings.objects_in("s3://b")
    assert list(found.pages()) == [[b"1", b"zz"]] and found.sizes.tolist() == [0, 2]
    assert server.asked.total() < 9, "a request for each page of all keys would be 8"


def test_keys_that_come_in_no_order(server, monkeypatch):
    """Some stores list keys without an order."""
    from penstock.core.object_stores import Stores

    pages = Stores.list_pages

    def shuffled(self, *arguments):
        for names, sizes, tags, *rest in reversed(list(pages(self, *arguments))):
            yield names[::-1], sizes[::-1], tags[::-1], *rest

    monkeypatch.setattr(Stores, "list_pages", shuffled)
    assert epoch(server) == expected(server)


def test_used_again_while_it_is_young_enough(server, tmp_path):
    cache = tmp_path / "cache"
    assert epoch(server, cache=cache, listing_age="1h") == expected(server)
    before = server.asked.copy()
    assert epoch(server, cache=cache, listing_age="1h") == expected(server)
    assert server.asked == before, "nothing at all is asked for"
    server.objects["b/z/999.jpg"] = b"new"
    assert epoch(server, cache=cache, listing_age="1h") == (list(server.objects.values())[:-1], expected(server)[1])
    assert epoch(server, n=151, cache=cache)[0] == list(server.objects.values()), "without the option it is listed"
    for path in Path(cache, "listings").iterdir():  # as after two hours
        with np.load(path) as file:
            columns = {**file}
        np.savez(path, **{**columns, "begun": columns["begun"] - 7200})
    assert epoch(server, n=151, cache=cache, listing_age="1h")[0] == list(server.objects.values())
    assert epoch(server, n=151, cache=cache, listing_age=datetime_of(hours=1))[0] == list(server.objects.values())


def datetime_of(**arguments):
    import datetime

    return datetime.timedelta(**arguments)


def test_an_object_that_has_changed_since_is_an_error_of_its_sample(server, tmp_path):
    """Bytes of a version other than the listed one are never returned."""
    cache = tmp_path / "cache"
    epoch(server, cache=cache, listing_age="1h")
    for path in Path(cache).glob("??/*"):
        path.write_bytes(b"")  # what was read is no longer there, the listing is; blocks may still be open
    server.objects["b/y/007.jpg"] = b"other"
    with pytest.raises(RuntimeError, match="has changed since it was found") as caught:
        epoch(server, cache=cache, listing_age="1h")
    assert "s3://b/y/007.jpg" in str(caught.value)
    assert epoch(server, cache=cache) == expected(server)


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[: len(b) // 2], lambda b: b[:200] + b"!!" + b[202:]])
def test_damaged_listings_are_made_anew(server, tmp_path, damage):
    cache = tmp_path / "cache"
    epoch(server, cache=cache, listing_age="1h")
    for path in Path(cache, "listings").iterdir():
        path.write_bytes(damage(path.read_bytes()))
    for _ in range(2):
        assert epoch(server, cache=cache, listing_age="1h") == expected(server)


def test_listings_of_other_stores_are_others(server, tmp_path):
    """The same URL on another server."""
    cache = tmp_path / "cache"
    epoch(server, cache=cache, listing_age="1h")
    with serving({path: b"else" + body for path, body in server.objects.items()}) as other:
        assert epoch(other, cache=cache, listing_age="1h") == expected(other)


def test_without_a_cache(server):
    for _ in range(2):
        assert epoch(server, listing_age="1h") == expected(server)
    assert server.asked["b"] + server.asked["b/"] == 2 * 10


def test_a_cache_that_can_not_be_written_to(server, tmp_path):
    (tmp_path / "file").write_text("no folder")
    for _ in range(2):
        assert epoch(server, cache=tmp_path / "file" / "cache", listing_age=60) == expected(server)


def test_wrong_ages():
    with pytest.raises(TypeError, match=r"listing_age takes seconds, a timedelta or a text as '5s'.*got 'old'"):
        storage.StorageSettings.checked({"listing_age": "old"})


def test_threads_end_when_there_is_nothing_to_read(server, monkeypatch):
    """All but one, which starts others when there is."""
    monkeypatch.setattr(storage, "_IDLE_S", 0.3)
    monkeypatch.setattr(storage.Connection, "_asks_natively", lambda self: False)
    server.latency, n = 0.02, len(server.objects)
    before = set(threading.enumerate())

    @pipeline_def(batch_size=n, num_threads=2, storage_options=options(server))
    def pipe():
        return fn.readers.file(file_root="s3://b")

    def at_work():
        return [t for t in threading.enumerate() if t not in before and t.name == "penstock remote"]

    for _ in range(2):
        data = pipe().run()[0]
        assert [bytes(np.asarray(data.at(i))) for i in range(n)] == expected(server)[0]
        assert len(at_work()) > 5
        end = time.monotonic() + 60
        while len(at_work()) > 1:
            assert time.monotonic() < end, at_work()
            time.sleep(0.01)
    assert len(at_work()) == 1
