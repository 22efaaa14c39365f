# SPDX-License-Identifier: Apache-2.0
"""`penstock ls`, `penstock cp` and `penstock doctor URL`."""

import random

import pytest

from object_server import serving
from penstock.cli import main

pytest.importorskip("obstore")
OBJECTS = {"b/x/1.jpg": b"one", "b/x/2.jpg": b"two!", "b/x/deep/3.jpg": b"3", "b/top": b"t" * 1234}


@pytest.fixture
def server(monkeypatch):
    for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "an-id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "a-secret")
    with serving(OBJECTS) as s:
        monkeypatch.setenv("AWS_ENDPOINT_URL", s.url)
        yield s


def out(capsys, *arguments, code=0):
    assert main(list(arguments)) == code
    return [line.split() for line in capsys.readouterr().out.splitlines()]


def test_ls(server, capsys):
    assert out(capsys, "ls", "s3://b") == [["x/"], ["1,234", "top"]]
    assert out(capsys, "ls", "s3://b/x/") == [["deep/"], ["3", "1.jpg"], ["4", "2.jpg"]]
    assert out(capsys, "ls", "-r", "s3://b/x") == [["3", "1.jpg"], ["4", "2.jpg"], ["1", "deep/3.jpg"]]
    assert out(capsys, "ls", f"{server.url}/b/top") == [["1,234", "top"]]


def test_cp(server, capsys, tmp_path):
    assert main(["cp", "s3://b/x/", str(tmp_path / "x")]) == 0
    got = {f"b/x/{p.relative_to(tmp_path / 'x')}": p.read_bytes() for p in (tmp_path / "x").rglob("*.*")}
    assert got == {k: v for k, v in OBJECTS.items() if k != "b/top"}
    assert main(["cp", f"{server.url}/b/top?signature=1", str(tmp_path)]) == 0
    assert (tmp_path / "top").read_bytes() == OBJECTS["b/top"]
    assert main(["cp", f"{tmp_path}/x/", "s3://new/y"]) == 0
    assert main(["cp", f"{tmp_path}/top", "s3://new/"]) == 0
    assert {k: v for k, v in server.objects.items() if k.startswith("new")} == {
        **{k.replace("b/x", "new/y"): v for k, v in OBJECTS.items() if k != "b/top"},
        "new/top": OBJECTS["b/top"],
    }


def test_cp_of_what_is_large(server, tmp_path, monkeypatch):
    """Copied in pieces, with a retry after a truncated response."""
    from penstock.core import object_stores

    monkeypatch.setattr(object_stores, "_PIECE", 1 << 16)
    large = server.objects["b/large"] = random.Random(1).randbytes(3_000_001)
    server.fault = lambda path, number: "cut" if number == 1 else None
    assert main(["cp", "s3://b/large", str(tmp_path / "a")]) == 0
    assert (tmp_path / "a").read_bytes() == large and server.asked["b/large"] == 2
    server.gzips = True
    assert main(["cp", f"{server.url}/b/large", str(tmp_path / "b")]) == 0
    assert (tmp_path / "b").read_bytes() == large
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "b"]


def test_names_that_lead_out_of_the_folder(server, capsys, tmp_path, monkeypatch):
    from penstock.core.object_stores import Stores

    monkeypatch.setattr(Stores, "list_all", lambda self, url: iter([("../evil", None)]))
    assert main(["cp", "s3://b/x/", str(tmp_path / "x")]) == 1
    assert "leads out of the folder" in capsys.readouterr().err
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("arguments", [("ls", "s3://b/none"), ("cp", "s3://b/none", "to"), ("cp", "s3://b/no/", "to")])
def test_what_is_not_there(server, capsys, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(list(arguments)) == 1
    assert "there is no" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments, told",
    [
        (("ls", "{}"), "'{}' is not one of the URLs that can be read: http://"),
        (("ls", "http://127.0.0.1:9/folder/"), "servers of http:// and https:// don't list folders"),
        (("ls", "-r", "https://127.0.0.1:9/folder"), "servers of http:// and https:// don't list folders"),
        (("cp", "{}/none", "{}/to"), "No such file or directory: {}/none"),
        (("cp", "{}", "{}/to"), "Is a directory: {}; a slash at its end copies the whole folder"),
    ],
)
def test_what_can_not_be_done(capsys, arguments, told, tmp_path):
    assert main([a.format(tmp_path) for a in arguments]) == 1
    assert told.format(tmp_path) in capsys.readouterr().err


def test_doctor(server, capsys):
    assert main(["doctor", "s3://b/x"]) == 0
    said = capsys.readouterr().out
    assert "a request takes" in said and "3 objects, 0.0 MB" in said
    assert main(["doctor", f"{server.url}/b/none?signature=secret"]) == 0
    said = capsys.readouterr().out
    assert "missing" in said and "there is no such object" in said and "secret" not in said
