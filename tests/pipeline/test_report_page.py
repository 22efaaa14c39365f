# SPDX-License-Identifier: Apache-2.0
"""The page written by `Pipeline.report`, read with Python's HTML parser."""

import os
from html.parser import HTMLParser

import numpy as np
import pytest

from penstock import fn, pipeline_def

VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Its elements and text. Fails at an element that is not closed or closed in the wrong order."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.text = [], [], ""
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


def source(i=0):
    good = np.zeros((8, 8, 3), "u1")
    return lambda: [good] * 4


@pytest.fixture
def pipe():
    @pipeline_def(batch_size=4, num_threads=2, exec_pipelined=False)
    def flips():
        x = fn.external_source(source=source(), layout="HWC")
        return fn.flip(x, horizontal=fn.random.coin_flip(), name="<flip> & more"), fn.random.uniform()

    return flips()


def read(path):
    return Page(path.read_text(encoding="utf-8"))


def test_parts(pipe, tmp_path):
    for _ in range(5):
        outputs = pipe.run()
    pipe.report(tmp_path / "report.html", outputs)
    page = read(tmp_path / "report.html")
    assert "flips" in page.text and "20 samples in 5 batches" in page.text
    assert pipe.stats()["limit"].split(";")[0].split("%")[0] in page.text
    for title in ("Time of the operators", "The last batches", "Outputs", "Graph", "Plan"):
        assert title in page.text
    assert "Bad samples" not in page.text
    assert page.text.count("flip '<flip> & more'") >= 2  # escaped once, in the table and in the graph
    images = page.all("img")
    assert len(images) == 4 and all(i["src"].startswith("data:image/png;base64,") for i in images)
    assert len(page.all("rect")) >= 5 * 4 + 4  # the flips, and the operators
    assert not page.all("script") and not page.all("link")


def test_before_the_first_batch(pipe, tmp_path):
    pipe.report(str(tmp_path / "report.html"))
    page = read(tmp_path / "report.html")
    assert "Nothing was measured yet." in page.text and "The last batches" not in page.text


def test_bad_samples(tmp_path):
    @pipeline_def(batch_size=4, num_threads=2, on_error="skip", exec_pipelined=False)
    def damaged():
        return fn.decoders.image(fn.external_source(source=lambda: [np.frombuffer(b"<b>no image", "u1")] * 4))

    pipe = damaged()
    pipe.run()
    pipe.report(tmp_path / "report.html")
    page = read(tmp_path / "report.html")
    assert "Bad samples" in page.text and page.text.count("decoders.image") >= 4
    assert not page.all("b")


def test_names_that_are_not_utf8(tmp_path):
    name = os.fsencode(tmp_path) + b"/\xff.jpg"
    with open(name, "wb") as file:
        file.write(b"no image")

    @pipeline_def(batch_size=1, num_threads=1, on_error="skip")
    def damaged():
        return fn.decoders.image(fn.readers.file(files=[os.fsdecode(name)])[0])

    pipe = damaged()
    pipe.run()
    pipe.report(tmp_path / "report.html")
    assert "udcff.jpg" in read(tmp_path / "report.html").text


def test_the_timeline_is_limited(pipe, tmp_path, monkeypatch):
    from penstock.pipeline import page as of_pipeline

    for _ in range(20):
        pipe.run()
    pipe.report(tmp_path / "all.html")
    monkeypatch.setattr(of_pipeline, "_MOST_SPANS", 10)
    pipe.report(tmp_path / "few.html")
    everything, few = (len(read(tmp_path / n).all("title")) for n in ("all.html", "few.html"))
    assert 0 < few <= 11 < everything


def test_no_operator_is_drawn_on_another(pipe, tmp_path):
    pipe.report(tmp_path / "report.html")
    boxes = [r for r in read(tmp_path / "report.html").all("rect") if r["height"] == "24"]
    places = [(float(r["x"]), float(r["y"]), float(r["width"])) for r in boxes]
    assert len(places) == 4
    for i, (x, y, width) in enumerate(places):
        for x2, y2, width2 in places[:i]:
            assert y != y2 or x + width < x2 or x2 + width2 < x


def test_notebooks(pipe):
    assert "not built" in Page(pipe._repr_html_()).text
    pipe.build()
    assert "samples" not in Page(pipe._repr_html_()).text
    pipe.run()
    assert "ms/sample" in Page(pipe._repr_html_()).text
