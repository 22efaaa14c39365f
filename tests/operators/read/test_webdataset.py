# SPDX-License-Identifier: Apache-2.0
"""readers.webdataset: samples of archives of all kinds, compared with Python's tarfile, and errors for damaged ones."""

import io
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest

from penstock import fn, pipeline_def, types
from penstock.operators.read._table import scan

LONG = "d/" + "long" * 60
MEMBERS = [
    *((f"a/{i:03}.{e}", f"{i}{e}".encode() * (4 * i + 4)) for i in range(9) for e in ("jpg", "cls", "meta.json")),
    ("a/.hidden.jpg", b"hide"),
    (f"{LONG}.jpg", b"long"),
    (f"{LONG}.cls", b"name"),
    ("ü/ñandú.jpg", "ü".encode() * 700),
    ("ü/ñandú.cls", b""),
    ("b/1.png", b"1png"),
    ("b/1.cls", b"1cls"),
    ("b/2.JPG", b"2JPG"),
    ("b/2.cls", b"2cls"),
    ("b/3.jpg", b"only"),
    ("b/4.jpg", b"frst"),
    ("b/4.jpg", b"scnd"),
    ("b/4.cls", b"4cls"),
]
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def write(path, members=MEMBERS, format=tarfile.PAX_FORMAT, **options):
    with tarfile.open(path, "w", format=format, **options) as archive:
        for name, content in members:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return str(path)


def samples_of(path):
    """The definition: adjacent files with the same path up to the first dot of the file name."""
    samples, last = [], None
    with tarfile.open(path) as archive:
        for member in archive:
            folder, _, own = member.name.rpartition("/")
            base, _, ext = own.partition(".")
            if not member.isfile() or not base:
                continue
            if (folder, base) != last:
                samples.append({})
                last = folder, base
            samples[-1].setdefault(ext, archive.extractfile(member).read())
    return samples


def build(batch_size=1, on_error="raise", **kwargs):
    @pipeline_def(batch_size=batch_size, num_threads=2, on_error=on_error)
    def pipe():
        outputs = fn.readers.webdataset(name="r", **kwargs)
        return tuple(outputs) if isinstance(outputs, list) else outputs

    return pipe()


def read(**kwargs):
    pipe = build(**kwargs)
    return [tuple(bytes(np.asarray(x.at(0))) for x in pipe.run()) for _ in range(pipe.epoch_size("r"))]


def expected(path, ext):
    return [tuple(next((s[e] for e in alternatives.split(";") if e in s), b"") for alternatives in ext) for s in path]


@pytest.mark.parametrize("format", ["gnu", "pax"])
@pytest.mark.parametrize("ext", [["jpg", "cls"], ["jpg;png", "cls"], ["meta.json"], ["cls", "jpg", "cls"]], ids=str)
def test_samples(tmp_path, format, ext):
    path = write(tmp_path / "a.tar", format=FORMATS[format])
    assert read(paths=path, ext=ext) == expected(samples_of(path), ext)


def test_ustar_prefix_and_folders(tmp_path):
    name = "p" * 90 + "/" + "n" * 90
    path = write(tmp_path / "a.tar", [(f"{name}.jpg", b"x" * 600), (f"{name}.cls", b"1")], FORMATS["ustar"])
    with tarfile.open(path, "a") as archive:
        for kind, own in (
            (tarfile.DIRTYPE, "folder.jpg"),
            (tarfile.SYMTYPE, "link.jpg"),
            (tarfile.FIFOTYPE, "pipe.jpg"),
        ):
            member = tarfile.TarInfo(own)
            member.type, member.linkname = kind, "x"
            archive.addfile(member)
        archive.addfile(tarfile.TarInfo("last.jpg"))
    assert read(paths=path, ext=["jpg", "cls"]) == [(b"x" * 600, b"1"), (b"", b"")]


def test_global_header_and_base_256(tmp_path):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abcd" * 200), ("2.jpg", b"e")], pax_headers={"comment": "of all"})
    content = bytearray((tmp_path / "a.tar").read_bytes())
    at = next(i for i in range(0, len(content), 512) if content[i : i + 5] == b"1.jpg")
    content[at + 124 : at + 136] = b"\x80" + (800).to_bytes(11, "big")
    content[at + 148 : at + 156] = b" " * 8
    content[at + 148 : at + 156] = b"%06o\0 " % sum(content[at : at + 512])
    (tmp_path / "a.tar").write_bytes(content)
    assert read(paths=path, ext=["jpg"]) == [(b"abcd" * 200,), (b"e",)]


@pytest.mark.parametrize("behavior, n", [("", 15), ("empty", 15), ("Skip", 12)])
def test_missing_components(tmp_path, behavior, n):
    path = write(tmp_path / "a.tar")
    got = read(paths=path, ext=["jpg", "cls"], missing_component_behavior=behavior)
    all_of_them = expected(samples_of(path), ["jpg", "cls"])
    names = [s for s in samples_of(path) if behavior != "Skip" or {"jpg", "cls"} <= s.keys()]
    assert got == expected(names, ["jpg", "cls"]) and len(got) == n and len(all_of_them) == 15


def test_case_of_extensions(tmp_path):
    path = write(tmp_path / "a.tar", [("1.JPG", b"1"), ("2.jpg", b"2"), ("3.Jpg", b"3")])
    assert read(paths=path, ext=["jPg"], case_sensitive_extensions=False) == [(b"1",), (b"2",), (b"3",)]
    assert read(paths=path, ext=["jpg"], case_sensitive_extensions=True) == [(b"",), (b"2",), (b"",)]


@pytest.mark.parametrize("dtype", ["INT16", "UINT32", "FLOAT", "FLOAT64", "INT64", "BOOL"])
def test_dtypes(tmp_path, dtype):
    content = np.random.default_rng(0).bytes(80)
    path = write(tmp_path / "a.tar", [("1.bin", content), ("1.jpg", b"x")])
    pipe = build(paths=path, ext=["bin", "jpg", "none"], dtypes=[getattr(types, dtype), types.UINT8, types.FLOAT])
    x, _, none = (o.at(0) for o in pipe.run())
    wanted = np.frombuffer(content, types.to_numpy_type(getattr(types, dtype)))
    assert x.dtype == wanted.dtype and x.tobytes() == wanted.tobytes()
    assert none.shape == (0,) and none.dtype == "f4"


def test_sources(tmp_path):
    path = write(tmp_path / "a.tar", [("1.jpg", b"x"), ("1.cls", b"y")])
    jpg, cls = build(paths=path, ext=["jpg", "cls"]).run()
    assert jpg[0].source_info() == f"{path}:512:1.jpg" and cls[0].source_info() == f"{path}:1536:1.cls"


def test_several_archives_shards_and_shuffle(tmp_path):
    paths = [write(tmp_path / f"{k}.tar", [(f"{k}{i}.x", b"%d%d" % (k, i)) for i in range(3 + k)]) for k in range(3)]
    everything = [(b"%d%d" % (k, i),) for k in range(3) for i in range(3 + k)]
    assert read(paths=paths, ext=["x"]) == everything
    parts = [build(paths=paths, ext=["x"], num_shards=4, shard_id=s, stick_to_shard=True) for s in range(4)]
    got = [bytes(p.run()[0].at(0)) for s, p in enumerate(parts) for _ in range((s + 1) * 12 // 4 - s * 12 // 4)]
    assert got == [x for (x,) in everything]
    shuffled = read(paths=paths, ext=["x"], shuffle="global", seed=1)
    assert sorted(shuffled) == sorted(everything) and shuffled != everything


# Index files ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format", ["gnu", "pax"])
def test_own_index_gives_the_same(tmp_path, format):
    path = write(tmp_path / "a.b.tar", format=FORMATS[format])
    command = [sys.executable, "-c", "from penstock.cli.wds2idx import main; main()", path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    assert "stage: collect" in done.stdout and "stage: done" in done.stdout
    assert (tmp_path / "a.idx").read_text().splitlines()[0] == "v1.2 15"
    kwargs = {"paths": path, "ext": ["jpg;png", "cls"]}
    assert read(**kwargs, index_paths=str(tmp_path / "a.idx")) == read(**kwargs)


@pytest.mark.parametrize("version", ["v1.0", "v1.1"])
def test_index_without_names(tmp_path, version):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc"), ("1.cls", b"d"), ("2.jpg", b"e")])
    (tmp_path / "i").write_text(f"{version} 2\njpg 512 3 cls 1536 1\njpg 2560 1\n")
    kwargs = {"paths": path, "index_paths": str(tmp_path / "i"), "ext": ["jpg", "cls"]}
    assert read(**kwargs) == [(b"abc", b"d"), (b"e", b"")]


def test_names_with_blanks_in_an_index(tmp_path):
    path = write(tmp_path / "a.tar", [("my cat 1.jpg", b"abc"), ("my cat 1.cls", b"d")])
    (tmp_path / "i").write_text("v1.2 1\njpg 512 3 my cat 1.jpg cls 1536 1 my cat 1.cls\n")
    pipe = build(paths=path, index_paths=str(tmp_path / "i"), ext=["jpg", "cls"])
    jpg, cls = pipe.run()
    assert (bytes(jpg.at(0)), bytes(cls.at(0))) == (b"abc", b"d")
    assert cls[0].source_info().endswith(":1536:my cat 1.cls")


@pytest.mark.parametrize(
    "text, error",
    [
        ("", "the index file is empty"),
        ("v2.0 1\njpg 512 3 1.jpg\n", "line 1 of the index file must begin with its version"),
        ("v1.2\n", "line 1 of the index file must say how many samples"),
        ("v1.2 0\n", "line 1 of the index file must say how many samples"),
        ("v1.2 99999999999999999999\n", "line 1 of the index file must say how many samples"),
        ("v1.2 2\njpg 512 3 1.jpg\n", "ends after 1 of the 2 samples"),
        ("v1.2 999999999999\njpg 512 3 1.jpg\n", "ends after 1 of the 999999999999 samples"),
        ("v1.2 1\n\n", "line 2 of the index file has no members"),
        ("v1.2 1\njpg 512\n", "line 2 of the index file must be made of: extension offset size name"),
        ("v1.1 1\njpg 512 x\n", "line 2 of the index file must be made of: extension offset size"),
        ("v1.2 1\njpg 3 512 1.jpg\n", "line 2 of the index file has an offset that is no multiple of 512"),
        ("v1.2 1\njpg 512 -3 1.jpg\n", "line 2 of the index file must be made of"),
    ],
)
def test_damaged_index(tmp_path, text, error):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc")])
    (tmp_path / "i").write_text(text)
    with pytest.raises(ValueError, match=error) as e:
        build(paths=path, index_paths=str(tmp_path / "i"), ext=["jpg"]).build()
    assert str(tmp_path / "i") in str(e.value)


@pytest.mark.parametrize(
    "line, error",
    [
        ("jpg 512 2 1.jpg", "the member has 3 bytes, the index says 2"),
        ("jpg 1024 3 1.jpg", "there is no tar header before the member"),
        ("jpg 51200000 3 1.jpg", "51200000|ends|end"),
        ("jpg 512 999999999999999 1.jpg", "end"),
    ],
)
def test_index_of_another_archive_is_never_another_records_bytes(tmp_path, line, error):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc"), ("2.jpg", b"defg")])
    (tmp_path / "i").write_text(f"v1.2 2\n{line}\njpg 1536 4 2.jpg\n")
    kwargs = {"paths": path, "index_paths": str(tmp_path / "i"), "ext": ["jpg"]}
    with pytest.raises(RuntimeError, match=error) as e:
        build(**kwargs).run()
    assert path in str(e.value)
    pipe = build(**kwargs, on_error="skip", batch_size=2)
    assert bytes(pipe.run()[0].at(0)) == b"defg"


# Damage -----------------------------------------------------------------------------------------------------------


def test_cut_off_member_is_a_bad_sample(tmp_path):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc"), ("2.jpg", b"d" * 4000)])
    content = (tmp_path / "a.tar").read_bytes()
    (tmp_path / "a.tar").write_bytes(content[:3000])
    pipe = build(paths=path, ext=["jpg"])
    assert bytes(pipe.run()[0].at(0)) == b"abc"
    with pytest.raises(RuntimeError, match="2.jpg, offset 1536"):
        pipe.run()


@pytest.mark.parametrize(
    "damage, error",
    [
        (lambda b: b[:1100], "cut off in the header at byte 1024"),
        (lambda b: b[:1030] + b"!" + b[1031:], "no tar header at byte 1024, or it is damaged"),
        (lambda b: b"\x1f\x8b" + b[2:], "no tar header at byte 0.*compressed"),
        (lambda b: b[:10], "cut off in the header at byte 0"),
        (lambda b: bytes(10240), "has no samples"),
        (lambda b: b"", "has no samples"),
    ],
)
def test_damaged_archive(tmp_path, damage, error):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc"), ("2.jpg", b"def")])
    (tmp_path / "a.tar").write_bytes(damage((tmp_path / "a.tar").read_bytes()))
    with pytest.raises(ValueError, match=error) as e:
        build(paths=path, ext=["jpg"]).build()
    assert path in str(e.value)


@pytest.mark.parametrize(
    "record", [b"99999999 path=x\n", b"0 path=x\n", b"12 path=abc!", b"8 pathx\n", b"x", b"18446744073709551626 a=b\n"]
)
def test_damaged_pax_record(tmp_path, record):
    block = tarfile.TarInfo("x")
    block.type, block.size = tarfile.XHDTYPE, len(record)
    content = block.tobuf(tarfile.USTAR_FORMAT) + record.ljust(512, b"\0")
    (tmp_path / "a.tar").write_bytes(content + tarfile.TarInfo("1.jpg").tobuf())
    with pytest.raises(ValueError, match="extended header at byte 0"):
        scan("tar_members", os.fsencode(tmp_path / "a.tar"), offset="i8", size="i8", name_end="i8", names="u1")


def test_sizes_beyond_all_files(tmp_path):
    member = tarfile.TarInfo("1.jpg")
    for size, error in (((1 << 62) - 1, "says that its member has"), (1 << 59, None)):
        block = bytearray(member.tobuf())
        block[124:136] = b"\x80" + size.to_bytes(11, "big")
        block[148:156] = b" " * 8
        block[148:156] = b"%06o\0 " % sum(block)
        (tmp_path / "a.tar").write_bytes(block + bytes(1024))
        if error:
            with pytest.raises(ValueError, match=error):
                build(paths=str(tmp_path / "a.tar"), ext=["jpg"]).build()
        else:
            with pytest.raises(RuntimeError, match="offset 512"):
                build(paths=str(tmp_path / "a.tar"), ext=["jpg"]).run()


@pytest.mark.parametrize(
    "kwargs, error",
    [
        ({"paths": []}, "'paths' is an empty list"),
        ({"ext": []}, "'ext' is an empty list"),
        ({"index_paths": ["a", "b"]}, "2 index_paths for 1 paths"),
        ({"dtypes": [types.FLOAT, types.FLOAT]}, "2 dtypes for 1 outputs"),
        ({"dtypes": [types.STRING]}, "dtypes takes numbers"),
        ({"missing_component_behavior": "drop"}, "takes 'empty', 'skip' or 'error'; got 'drop'"),
        (
            {"missing_component_behavior": "error", "ext": ["png"]},
            r"sample 0 \(1.jpg\) has no member with the extension png",
        ),
        ({"missing_component_behavior": "skip", "ext": ["png"]}, "no sample with members of the extensions png"),
        ({"paths": ["/no/such.tar"]}, "/no/such.tar"),
    ],
    ids=str,
)
def test_errors(tmp_path, kwargs, error):
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc")])
    with pytest.raises((ValueError, RuntimeError), match=error):
        build(**({"paths": path, "ext": ["jpg"]} | kwargs)).build()


# The cache --------------------------------------------------------------------------------------------------------


def test_kept_scan_follows_the_file(tmp_path, monkeypatch):
    from penstock.operators.read import _kept_tables

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(_kept_tables, "_WORTH_IT_S", 0)
    path = write(tmp_path / "a.tar", [("1.jpg", b"abc"), ("2.jpg", b"d")])
    assert read(paths=path, ext=["jpg"]) == [(b"abc",), (b"d",)]
    (kept,) = os.listdir(_kept_tables.folder())
    again = read(paths=path, ext=["jpg"])
    assert again == [(b"abc",), (b"d",)] and os.listdir(_kept_tables.folder()) == [kept]
    write(tmp_path / "a.tar", [("1.jpg", b"new"), ("2.jpg", b"d"), ("3.jpg", b"e")])
    assert read(paths=path, ext=["jpg"]) == [(b"new",), (b"d",), (b"e",)]
    for name in os.listdir(_kept_tables.folder()):
        file = os.path.join(_kept_tables.folder(), name)
        with open(file, "r+b") as f:
            f.seek(200)
            f.write(b"damage" * 40)
    assert read(paths=path, ext=["jpg"]) == [(b"new",), (b"d",), (b"e",)]


@pytest.mark.parametrize(
    ("ext", "unknown"), [(["jpeg", "cls"], "'jpeg'"), ([".jpg", "JPG;png"], r"'\.jpg' and 'JPG;png'")]
)
def test_extensions_that_no_sample_has(tmp_path, ext, unknown):
    path = write(tmp_path / "a.tar", [("1.jpg", b"a"), ("1.cls", b"1"), ("2.jpg", b"b")])
    told = f"no sample has a member with the extension {unknown}, so .* the first sample of .*a.tar has 'jpg', 'cls'"
    with pytest.warns(UserWarning, match=told):
        build(paths=[path], ext=ext).build()


def test_an_extension_that_one_sample_has(tmp_path, recwarn):
    path = write(tmp_path / "a.tar", [("1.jpg", b"a"), ("2.jpg", b"b"), ("2.cls", b"2")])
    assert [cls for _, cls in read(paths=[path], ext=["jpg", "cls"])] == [b"", b"2"]
    assert not [w for w in recwarn if "extension" in str(w.message)]


def test_a_pattern_is_not_a_path(tmp_path):
    with pytest.raises(RuntimeError, match="No such file.*; patterns are not expanded here"):
        build(paths=[str(tmp_path / "train-{000..999}.tar")], ext=["jpg"]).build()
