# SPDX-License-Identifier: Apache-2.0
"""The generated stubs have every operator with its arguments, and type checkers use them."""

import ast

import pytest

from modules import ROOT, load
from penstock.core.op import REGISTRY, snake_case
from penstock.registry import places
from type_checker import check, install

pytestmark = pytest.mark.slow

PROGRAM = """
# mypy: allow-untyped-defs
from penstock import fn, ops, pipeline_def, types

@pipeline_def(batch_size=4, num_threads=2)
def pipe():
    x = fn.external_source(source=lambda i: [])
    y = fn.brightness(x, brightness=1.5, dtype=types.FLOAT)
    reveal_type(y)
    bright = ops.Brightness(brightness_shift=0.5)
    fn.brightness(x, brightnes=1.5)
    fn.brightness(x, brightness="a")
    return bright(y)
"""


@pytest.fixture(scope="module")
def stubs():
    return load(ROOT / "tools" / "stubs.py")


def test_every_operator_is_there(stubs):
    files = stubs.stubs()
    trees = {path: ast.parse(text) for path, text in files.items()}
    for cls in REGISTRY.values():
        for path, name, _ in places(cls):
            for root, spelled, kind in (("fn", snake_case(name), ast.FunctionDef), ("ops", name, ast.ClassDef)):
                base = "/".join([root, *path])
                tree = trees.get(f"{base}/__init__.pyi") or trees[f"{base}.pyi"]
                found = [n for n in tree.body if isinstance(n, kind) and n.name == spelled]
                assert len(found) in (1, 3), spelled  # a function or class, or what a function with a list may be given
                for n in found if kind is ast.FunctionDef else ():
                    assert {a.arg for a in (*n.args.args, *n.args.kwonlyargs)} >= set(cls.schema), spelled


def test_those_beside_the_package_are_fresh(stubs):
    folder = ROOT / "src" / "penstock"
    parts = ("fn", "ops", "experimental")
    present = {str(p.relative_to(folder)): p.read_text() for part in parts for p in (folder / part).rglob("*.pyi")}
    if not present:
        pytest.skip("not built; `make stubs` writes them")
    assert present == stubs.stubs(), "the stubs are stale; run `make stubs`"


DYNAMIC = """
import numpy as np
from penstock.experimental import dynamic as ndd

for jpegs, labels in ndd.readers.File(file_root="x").next_epoch(8):
    images = ndd.decoders.image(jpegs, device="gpu")
    small = ndd.resize(images, size=(3, 4), resize_x=ndd.random.uniform(batch_size=8))
    reveal_type(ndd.crop_mirror_normalize(small, dtype=ndd.float32, mean=[1.0]))
one = ndd.as_tensor(np.zeros((3, 4, 3), np.uint8), layout="HWC")
reveal_type(ndd.noise.gaussian(one, rng=ndd.random.RNG(2)))
ndd.resize(one, sise=3)
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What a type checker prints about each program."""
    pytest.importorskip("mypy")
    folder, site = tmp_path_factory.mktemp("programs"), tmp_path_factory.mktemp("site")
    programs = {"graph.py": PROGRAM, "imperative.py": DYNAMIC}
    for name, text in programs.items():
        (folder / name).write_text(text)
    install(site)
    lines = check(folder, site, programs).splitlines()
    return {name: "\n".join(x for x in lines if x.startswith(f"{name}:")) for name in programs}


def test_a_type_checker_sees_them(printed):
    out = printed["graph.py"]
    assert 'Revealed type is "penstock.graph.node.DataNode"' in out, out
    assert 'did you mean "brightness"' in out
    assert 'Argument "brightness" to "brightness" has incompatible type "str"' in out
    assert out.count("error:") == 2, out


def test_the_imperative_mode(stubs, printed):
    files = stubs.stubs()
    assert {"experimental/dynamic/__init__.pyi", "experimental/dynamic/io/file.pyi"} <= set(files)
    out = printed["imperative.py"]
    found = [line for line in out.splitlines() if "Revealed" in line or "error" in line]
    assert len(found) == 4 and "_batch.Batch" in found[0] and "_tensor.Tensor" in found[1], out
    assert 'Unexpected keyword argument "sise"' in found[2]
