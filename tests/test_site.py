# SPDX-License-Identifier: Apache-2.0
"""The pages of the site: the operator reference, generated from classes and by running operators; valid links. `make
site` checks the output of Sphinx."""

import importlib.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.core.op import REGISTRY

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
NAMES = sorted(n for n in REGISTRY if not n.startswith("_"))


class Page:
    """The text of a page, its links, and its pictures with their alternative texts."""

    def __init__(self, path: Path):
        self.text = path.read_text(encoding="utf-8")
        self.links = re.findall(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)", self.text)
        self.pictures = re.findall(r"^:::\{figure\} (.+)$", self.text, re.M)
        self.captions = re.findall(r"^:alt: (.+)$", self.text, re.M)


@pytest.fixture(scope="module")
def tools():
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(ROOT / "tools"))
    yield {
        name: importlib.import_module(name)
        for name in ("reference", "build_site", "check_site", "doc_pictures", "doc_sounds")
    }
    patch.undo()


@pytest.fixture(scope="module")
def folder(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("reference")
    tools["reference"].Reference(folder).write()
    return folder


def read(folder, name):
    return Page(folder / f"{name}.md")


@pytest.mark.parametrize("name", NAMES)
def test_page_says_what_the_class_says(folder, name):
    cls, page = REGISTRY[name], read(folder, f"fn.{name}")
    assert f"fn.{name}(" in page.text
    plain = re.sub(r"\\(?=\|)", "", page.text).replace("`", "").replace("&lt;", "<")
    for arg in cls.schema.values():
        if arg.name != "name":
            assert f"| `{arg.name}` |" in page.text
            assert " ".join(arg.doc.replace("`", "").split())[:40].rstrip(".") in " ".join(plain.split())
    for layout in cls.layouts:
        assert f"`{layout}`" in page.text
    assert ", ".join(cls.devices) in page.text
    assert "## Example\n\n```pycon\n>>>" in page.text
    assert all((folder / p).is_file() for p in page.pictures)


def test_types_lead_to_what_they_take(folder):
    assert "types.md#daliinterptype" in read(folder, "fn.resize").links
    text = read(folder, "types").text
    for name in ("INTERP_LANCZOS3", "YCbCr", "FLOAT16"):
        assert f"`types.{name}`" in text


def test_index_and_gallery_lead_to_all_pages(folder):
    index, gallery = read(folder, "index"), read(folder, "gallery")
    assert {f"fn.{n}.md" for n in NAMES} <= set(index.links)
    assert "Geometry" in index.text and "Readers" in index.text
    assert {f"fn.{n}.md" for n in ("brightness", "crop_mirror_normalize", "random_resized_crop")} <= set(gallery.links)
    assert all((folder / p).is_file() for p in (*index.links, *gallery.links, *gallery.pictures))


def test_pictures_are_the_operators(folder):
    """Pixels are 1.5 times as bright, up to the limit, in the picture called brightness=1.5."""
    image = pytest.importorskip("PIL.Image")
    page = read(folder, "fn.brightness")
    before, after = (np.asarray(image.open(folder / p)).astype(int) for p in page.pictures[:2])
    assert page.captions[:2] == ["before", "brightness(image, brightness=1.5)"]
    assert before.shape == after.shape and before.std() > 10
    np.testing.assert_allclose(after, np.minimum(before * 1.5, 255), atol=0.5001)
    draws = [np.asarray(image.open(folder / p)) for p in read(folder, "fn.random_resized_crop").pictures[1:]]
    assert len(draws) == 4 and not np.array_equal(draws[0], draws[1])


def test_an_example_that_is_wrong_is_an_error(tools, monkeypatch):
    cls = REGISTRY["flip"]
    assert "fn.flip" in tools["reference"].example(cls)
    monkeypatch.setattr(cls, "__doc__", "Flips.\n\n>>> 1 + 1\n3\n")
    with pytest.raises(tools["reference"].ExampleError, match=r"fn\.flip.*(?s:.*)Got:\s+2"):
        tools["reference"].example(cls)


def test_without_a_gpu(tools, monkeypatch):
    """Operators that exist only on the GPU have a page, too."""
    reference = tools["reference"]
    on_gpu = [c for n, c in sorted(REGISTRY.items()) if c.devices == ("gpu",) and not n.startswith("_")]
    assert on_gpu

    def none():
        raise reference.driver.CudaError("no NVIDIA driver was found")

    monkeypatch.setattr(reference.driver, "device_count", none)
    monkeypatch.setattr(reference._Runner, "run", lambda *_, **__: pytest.fail("was run"))
    for cls in on_gpu:
        assert f"fn.{cls.fn_name}" in reference.example(cls) and "\n>>> " in reference.example(cls)


def test_every_family_has_a_title(tools):
    assert {tools["reference"].family(c) for n, c in REGISTRY.items() if not n.startswith("_")} <= set(
        tools["reference"].TITLES
    )


def test_every_operator_on_images_is_shown(tools):
    shown = tools["doc_pictures"].PICTURES
    families = ("bbox", "segmentation", "transforms")
    on_boxes = {n for n, c in REGISTRY.items() if c.__module__.split(".")[-2] in families} - {"box_encoder"}
    missing = [n for n, c in REGISTRY.items() if ("HWC" in c.layouts or n in on_boxes) and n not in shown]
    assert not missing, "give tools/doc_pictures.py a call to show for each"


def test_spectrograms(folder, tools):
    """Of a sound before and after: a time mask is silent and changes nothing else."""
    image = pytest.importorskip("PIL.Image")
    sounds = tools["doc_sounds"]
    page = read(folder, "fn.audio.time_mask")
    before, *drawn = (np.asarray(image.open(folder / p)).astype(int) for p in page.pictures[:4])
    assert page.captions[0] == "before" and page.captions[1].startswith("audio.time_mask(log_mel")
    assert before.shape == (160, 201, 3) and before.std() > 10
    for masked in drawn:
        columns = (masked != before).any(axis=(0, 2))
        assert 0 < columns.mean() < 0.5 and (masked[:, columns] == sounds.COLOURS[0].astype(int)).all()
    heard = {n for n in REGISTRY if REGISTRY[n].__module__.split(".")[-2] == "audio"}
    assert heard - set(sounds.SOUNDS) == {"audio.loudness", "decoders.audio", "peek_audio", "power_spectrum"}


def test_markdown(tools):
    reference = tools["reference"]
    assert reference.escape("a `x <y>` and <c>, 1 < 2") == "a `x <y>` and &lt;c>, 1 < 2"
    assert reference.table(["a|b"], [["`c|d`"]]) == "| a\\|b |\n| --- |\n| `c\\|d` |\n"


@pytest.fixture(scope="module")
def site(tools, tmp_path_factory):
    """The pages without slow parts."""
    folder = tmp_path_factory.mktemp("site")
    tools["build_site"].Site().write(folder, pictures=False, examples=False)
    return folder


def test_links_lead_somewhere(tools, site):
    assert tools["build_site"].broken(site) == []


def test_every_text_is_on_the_site(tools, site):
    """The site has all chapters of the guide, and every page in docs, tutorial, decision and table of measurements."""
    of = tools["build_site"].Site().of
    texts = [p for f in ("docs", "docs/decisions", "bench/results") for p in (ROOT / f).glob("*.md")]
    for path in [*texts, *(ROOT / "examples").glob("*.ipynb"), *ROOT.glob("*.md")]:
        name = path.relative_to(ROOT).as_posix()
        assert name in of, "add it to the sections of tools/build_site.py"
        assert (site / of[name]).is_file()
    guide = (ROOT / "docs" / "guide.md").read_text()
    pages = "".join(p.read_text() for p in (site / "guide").glob("*.md"))
    blocks = re.findall(r"^```python\n.*?^```$", guide, re.M | re.S)
    assert len(blocks) > 30 and all(b in pages for b in blocks)
    assert (site / "guide" / "bad-files.md").read_text().startswith("# Bad files\n")


def test_every_page_is_in_the_contents(site):
    """The same check as Sphinx's warning of pages in no table of contents, without Sphinx."""
    listed = set()
    for path in site.rglob("*.md"):
        for entries in re.findall(r"^```\{toctree\}\n(?::[^\n]*\n)+\n(.*?)^```$", path.read_text(), re.M | re.S):
            listed |= {(path.parent / f"{e}.md").resolve() for e in entries.split()}
    assert all(p.is_file() for p in listed), "listed, and there is no such page"
    files = {p.resolve() for p in site.rglob("*.md") if "orphan: true" not in p.read_text()[:30]}
    assert files - listed == {(site / "index.md").resolve()}


def test_broken_links_are_found(tools, site, tmp_path):
    shutil.copytree(site, tmp_path / "site")
    page = tmp_path / "site" / "guide" / "bad-files.md"
    page.write_text(page.read_text() + "\n[a](nothing.md) [`b` c](audio.md#no-such-heading) `[d](in code)`\n")
    assert tools["build_site"].broken(tmp_path / "site") == [
        "guide/bad-files.md: nothing.md",
        "guide/bad-files.md: audio.md#no-such-heading",
    ]
    with pytest.raises(tools["build_site"].LinkError, match=r"docs/faq.md: \.\./nowhere.py"):
        tools["build_site"].Site().target("../nowhere.py", "docs/faq.md")
    with pytest.raises(tools["build_site"].LinkError, match="the guide has no bad-flies"):
        tools["build_site"].Site().target("guide.md#bad-flies", "docs/faq.md")


def test_tutorials_show_the_pictures_of_their_notebooks(site):
    """With alternative texts: their titles in Jupyter, or the plain text output."""
    page = (site / "tutorials" / "pytorch_image_classification.md").read_text()
    line = next(x for x in page.splitlines() if "launch_pad" in x)
    assert line.startswith('<div class="output"') and line.count("<img src=") == line.count(' alt="') == 7
    assert 'alt="3: 72x96x3 data/places/launch_pad.jpg" title="3:' in line
    assert '<svg role="img" aria-label="from ' in page
    assert "```text\nTensorListCPU(" not in page


def html(body):
    return f'<html lang="en"><title>A page</title><h1 id="top">A</h1>{body}</html>'


def test_broken_links_are_found_in_html(tools, tmp_path):
    (tmp_path / "a.html").write_text(html('<a href="b.html#here">b</a><a href="https://example.org/x#y">x</a>'))
    (tmp_path / "b.html").write_text(
        html('<p id="here"></p><a href="a.html#gone">a</a><img src="none.png" alt="None"><a href="#here">t</a>')
    )
    wrong, outside = tools["check_site"].check(tmp_path)
    assert wrong == ["b.html: a.html#gone", "b.html: none.png"] and outside == {"https://example.org/x": "a.html"}


def test_what_a_screen_reader_misses_is_found(tools, tmp_path):
    (tmp_path / "a.html").write_text(html("<h2>B</h2><h3>C</h3><h2>D</h2>"))
    (tmp_path / "b.html").write_text(html('<h3>C</h3><h1>D</h1><img src="a.html"><img src="a.html" alt="">'))
    (tmp_path / "c.html").write_text("<html><h1>A</h1></html>")
    assert tools["check_site"].check(tmp_path)[0] == [
        "b.html lacks a level above h3",
        "b.html lacks a text for a.html",
        "b.html lacks one h1, there are 2",
        "c.html lacks a language",
        "c.html lacks a title",
    ]


@pytest.mark.skipif(
    not shutil.which("chromium") or not importlib.util.find_spec("axe_core_python"),
    reason="`make site BROWSER=1` installs Chromium and axe-core",
)
def test_what_a_browser_shows_is_looked_at(tmp_path):
    bad = '<img src="a.png"><p style="width:900px;color:#ccc">faint, and wider than a telephone</p>'
    (tmp_path / "bad.html").write_text(f"<!doctype html>{html(f'<body><main>{bad}</main></body>')}")
    command = [sys.executable, ROOT / "tools" / "look_at_site.py", tmp_path, tmp_path / "pictures"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode and "image-alt" in done.stderr and "color-contrast" in done.stderr
    assert "(telephone): it is 9" in done.stderr and "(desktop): it is" not in done.stderr
    assert {p.name for p in (tmp_path / "pictures").iterdir()} == {"bad-desktop.png", "bad-telephone.png"}


def test_pictures_come_before_the_arguments(folder):
    """Calls may have so many arguments that later content is on the next screen."""
    text = read(folder, "fn.resize").text
    assert text.index(":::{figure}") < text.index("fn.resize(\n") < text.index("::::{container} arguments\n| name |")
