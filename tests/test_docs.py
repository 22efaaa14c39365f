# SPDX-License-Identifier: Apache-2.0
"""The catalogue that `make docs` writes: a page per operator, made from its class and by running it."""

import html.parser
import importlib
from pathlib import Path

import numpy as np
import pytest

from penstock.core.op import REGISTRY

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
VOID = {"meta", "link", "img", "br"}


class Parser(html.parser.HTMLParser):
    """Fails for tags that don't match; keeps links, pictures and text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.links, self.pictures, self.captions, self.text = [], [], [], [], ""
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "a":
            self.links.append(attrs["href"])
        if tag == "img":
            self.pictures.append(attrs["src"])
            self.captions.append(attrs["alt"])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


@pytest.fixture(scope="module")
def tools():
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(ROOT / "tools"))
    yield {name: importlib.import_module(name) for name in ("docs", "doc_pictures", "doc_sounds", "doc_html")}
    patch.undo()


@pytest.fixture(scope="module")
def folder(tools, tmp_path_factory):
    folder = tmp_path_factory.mktemp("docs")
    tools["docs"].Catalogue(folder).write(sorted(REGISTRY))
    return folder


def read(folder, name):
    return Parser((folder / f"{name}.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_page_says_what_the_class_says(folder, name):
    cls, page = REGISTRY[name], read(folder, name)
    assert f"fn.{name}(" in page.text
    for arg in cls.schema.values():
        if arg.name != "name":
            assert arg.name in page.text
            assert " ".join(arg.doc.replace("`", "").split())[:40].rstrip(".") in " ".join(page.text.split())
    for layout in cls.layouts:
        assert layout in page.text
    assert ", ".join(cls.devices) in page.text
    assert ">>>" in page.text and "Example" in page.text
    assert all((folder / p).is_file() for p in page.pictures)


def test_index_and_gallery_lead_to_all_pages(folder):
    index, gallery = read(folder, "index"), read(folder, "gallery")
    assert {f"{n}.html" for n in REGISTRY} <= set(index.links)
    assert "Geometry" in index.text and "Readers" in index.text
    assert {f"{n}.html" for n in ("brightness", "crop_mirror_normalize", "random_resized_crop")} <= set(gallery.links)
    assert all((folder / p).is_file() for p in (*index.links, *gallery.links, *gallery.pictures))


def test_pictures_are_the_operators(folder):
    """Twice as bright below the limit, for the picture called brightness=1.5."""
    image = pytest.importorskip("PIL.Image")
    page = read(folder, "brightness")
    before, after = (np.asarray(image.open(folder / p)).astype(int) for p in page.pictures[:2])
    assert page.captions[:2] == ["before", "brightness(image, brightness=1.5)"]
    assert before.shape == after.shape and before.std() > 10
    np.testing.assert_allclose(after, np.minimum(before * 1.5, 255), atol=0.5001)
    draws = [np.asarray(image.open(folder / p)) for p in read(folder, "random_resized_crop").pictures[1:]]
    assert len(draws) == 4 and not np.array_equal(draws[0], draws[1])


def test_an_example_that_is_wrong_is_an_error(tools, monkeypatch):
    cls = REGISTRY["flip"]
    assert "fn.flip" in tools["docs"].example(cls)
    monkeypatch.setattr(cls, "__doc__", "Flips.\n\n>>> 1 + 1\n3\n")
    with pytest.raises(tools["docs"].ExampleError, match=r"fn\.flip.*(?s:.*)Got:\s+2"):
        tools["docs"].example(cls)


def test_without_a_gpu(tools, monkeypatch):
    """An operator that is on the GPU only has its page all the same."""
    docs = tools["docs"]
    on_gpu = [c for n, c in sorted(REGISTRY.items()) if c.devices == ("gpu",) and not n.startswith("_")]
    assert on_gpu

    def none():
        raise docs.driver.CudaError("no NVIDIA driver was found")

    monkeypatch.setattr(docs.driver, "device_count", none)
    monkeypatch.setattr(docs._Runner, "run", lambda *_, **__: pytest.fail("was run"))
    for cls in on_gpu:
        assert f"fn.{cls.fn_name}" in docs.example(cls) and 'class="out"' in docs.example(cls)


def test_every_family_has_a_title(tools):
    assert {tools["docs"].family(c) for n, c in REGISTRY.items() if not n.startswith("_")} <= set(tools["docs"].TITLES)


def test_every_operator_on_images_is_shown(tools):
    shown = tools["doc_pictures"].PICTURES
    families = ("bbox", "segmentation", "transforms")
    on_boxes = {n for n, c in REGISTRY.items() if c.__module__.split(".")[-2] in families} - {"box_encoder"}
    missing = [n for n, c in REGISTRY.items() if ("HWC" in c.layouts or n in on_boxes) and n not in shown]
    assert not missing, "give tools/doc_pictures.py a call to show for each"


def test_spectrograms(folder, tools):
    """Of a sound before and after: a mask of time leaves the rest as it was, and silence where it lies."""
    image = pytest.importorskip("PIL.Image")
    sounds = tools["doc_sounds"]
    page = read(folder, "audio.time_mask")
    before, *drawn = (np.asarray(image.open(folder / p)).astype(int) for p in page.pictures[:4])
    assert page.captions[0] == "before" and page.captions[1].startswith("audio.time_mask(log_mel")
    assert before.shape == (160, 201, 3) and before.std() > 10
    for masked in drawn:
        columns = (masked != before).any(axis=(0, 2))
        assert 0 < columns.mean() < 0.5 and (masked[:, columns] == sounds.COLOURS[0].astype(int)).all()
    heard = {n for n in REGISTRY if REGISTRY[n].__module__.split(".")[-2] == "audio"}
    assert heard - set(sounds.SOUNDS) == {"audio.loudness", "decoders.audio", "peek_audio", "power_spectrum"}


def test_markdown(tools):
    prose = tools["doc_html"].prose
    assert prose("a `x < y` and *b*\nand <c>") == "<p>a <code>x &lt; y</code> and <em>b</em> and &lt;c&gt;</p>"
    assert prose("Either:\n* one\n  of\n* two") == "<p>Either:</p><ul><li>one of</li><li>two</li></ul>"
    assert prose("    x = 1\n    y = 2") == "<pre>x = 1\ny = 2</pre>"
    assert prose("`2 * y` and 3 * 4 * 5") == "<p><code>2 * y</code> and 3 * 4 * 5</p>"
