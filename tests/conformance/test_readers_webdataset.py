# SPDX-License-Identifier: Apache-2.0
"""readers.webdataset against the real DALI: outputs, types, order and sources over archives, indexes and arguments.

Deliberate differences: without an index, DALI treats hidden files as samples (with an index it does not), and it does
not support non-ASCII names in pax headers; its index is wrong for archives with GNU long names. Such archives are
tested in tests/operators/read/test_webdataset.py.
"""

import io
import tarfile

import pytest

from conformance.reader_runs import ORDERS, compare, refuses

NAME = "readers.webdataset"
MEMBERS = [
    *((f"a/{i:02}.{e}", f"{i}{e}".encode() * (4 * i)) for i in range(9) for e in ("jpg", "cls", "meta.json")),
    ("b/1.png", b"1pngaaaa"),
    ("b/1.cls", b"1clsbbbb"),
    ("b/2.JPG", b"2JPGcccc"),
    ("no_extension", b"none"),
    ("b/4.jpg", b"frst"),
    ("b/4.jpg", b"second__"),
    ("b/4.cls", b"4cls"),
]


@pytest.fixture(scope="module")
def archives(tmp_path_factory, dali):
    from wds2idx import IndexCreator

    root = tmp_path_factory.mktemp("wds")
    for k, format in enumerate((tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT)):
        with tarfile.open(root / f"{k}.tar", "w", format=format) as archive:
            folder = tarfile.TarInfo("folder.jpg")
            folder.type = tarfile.DIRTYPE
            archive.addfile(folder)
            for name, content in MEMBERS[k * 3 :]:
                member = tarfile.TarInfo(name)
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
        with IndexCreator(str(root / f"{k}.tar"), str(root / f"{k}.idx"), verbose=False) as creator:
            creator.create_index()
    return root


def paths(root, indexed, n=2):
    index = {"index_paths": [str(root / f"{k}.idx") for k in range(n)]} if indexed else {}
    return {"paths": [str(root / f"{k}.tar") for k in range(n)], **index}


@pytest.mark.parametrize("indexed", [False, True])
@pytest.mark.parametrize(
    "kwargs",
    [
        {"ext": ["jpg", "cls"]},
        {"ext": "jpg"},
        {"ext": ["jpg;png", "cls"]},
        {"ext": ["png;jpg", "meta.json", "none"]},
        {"ext": ["JPG", "cls"], "case_sensitive_extensions": False},
        {"ext": ["jpg", "cls"], "missing_component_behavior": "skip"},
        {"ext": ["jpg", "cls"], "missing_component_behavior": "Empty"},
        {"ext": ["jpg", "cls"], "dtypes": ["INT32", "INT16"]},
        {"ext": ["jpg", "cls"], "dtypes": ["FLOAT16", "UINT8"]},
        {"ext": ["no_extension"]},
        {"ext": [""]},
    ],
    ids=str,
)
def test_outputs(archives, kwargs, indexed):
    if "dtypes" in kwargs:
        import nvidia.dali.types as of_dali

        from conformance.reader_runs import run
        from penstock import types

        rest = {k: v for k, v in kwargs.items() if k != "dtypes"} | paths(archives, indexed)
        ours = run(False, NAME, rest | {"dtypes": [getattr(types, t) for t in kwargs["dtypes"]]}, iterations=7)
        assert ours == run(True, NAME, rest | {"dtypes": [getattr(of_dali, t) for t in kwargs["dtypes"]]}, iterations=7)
    else:
        compare(NAME, kwargs | paths(archives, indexed), iterations=7)


@pytest.mark.parametrize("order", ORDERS, ids=str)
def test_order(archives, order):
    compare(NAME, {"ext": ["jpg", "cls"], **paths(archives, True), **order}, iterations=9)


@pytest.mark.parametrize(
    "kwargs",
    [
        {"ext": []},
        {"paths": []},
        {"index_paths": ["a", "b", "c"]},
        {"missing_component_behavior": "error"},
        {"missing_component_behavior": "drop"},
        {"paths": "/no/such.tar", "index_paths": None},
        {"num_shards": 2, "shard_id": 2},
    ],
    ids=str,
)
def test_errors(archives, kwargs):
    kwargs = {"ext": ["jpg", "cls"], **paths(archives, True)} | kwargs
    assert refuses(NAME, {k: v for k, v in kwargs.items() if v is not None}) == (True, True)


def test_index(archives, tmp_path):
    """penstock's wds2idx writes the same index as DALI's."""
    from penstock.cli.wds2idx import IndexCreator

    for k in range(2):
        with IndexCreator(str(archives / f"{k}.tar"), str(tmp_path / "i"), verbose=False) as creator:
            creator.create_index()
        assert (tmp_path / "i").read_text() == (archives / f"{k}.idx").read_text()
