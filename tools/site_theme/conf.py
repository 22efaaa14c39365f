# SPDX-License-Identifier: Apache-2.0
"""How Sphinx makes the site of the pages that tools/site.py writes."""

from pathlib import Path

project = "penstock"
copyright = "the authors of penstock"
extensions = ["myst_parser"]
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 4
exclude_patterns = ["files"]
html_theme = "furo"
html_title = "penstock"
html_static_path = ["site.css"]
html_css_files = ["site.css"]
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
# Values that a run of a notebook printed are no code of any language.
highlight_language = "text"

# What axe-core finds in the theme's HTML: the level of the captions in the contents, two regions without names, what
# scrolls and can't be reached by the keyboard, heads of columns that are empty, a search without a heading.
ACCESSIBLE = (
    ('class="caption" role="heading"', 'class="caption" role="heading" aria-level="2"'),
    ('<aside class="sidebar-drawer"', '<aside class="sidebar-drawer" aria-label="Contents of the site"'),
    ('<aside class="toc-drawer', '<aside aria-label="Contents of this page" class="toc-drawer'),
    ("<pre>", '<pre tabindex="0">'),
    ('<div class="table-wrapper', '<div tabindex="0" class="table-wrapper'),
    ('<th class="head"><p></p></th>', "<td></td>"),
    ('<div id="search-results">', '<h1>Search</h1>\n<div id="search-results">'),
)


def make_accessible(app, exception) -> None:
    if exception is None:
        for path in Path(app.outdir).rglob("*.html"):
            text = path.read_text(encoding="utf-8")
            for old, new in ACCESSIBLE:
                text = text.replace(old, new)
            path.write_text(text, encoding="utf-8")


def setup(app) -> None:
    app.connect("build-finished", make_accessible)
