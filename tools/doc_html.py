# SPDX-License-Identifier: Apache-2.0
"""HTML of the catalogue: the frame of a page, its style, and the little Markdown that docstrings use."""

from __future__ import annotations

import html
import re

STYLE = """
:root { --ink: #1d2329; --soft: #5b6670; --line: #d8dee4; --back: #fff; --card: #f5f7f9; --link: #0b62a8; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --soft: #9aa6b2; --line: #39424b; --back: #14181c; --card: #1d2329; --link: #6db6f2; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem 1.25rem 4rem; max-width: 68rem; background: var(--back); color: var(--ink);
  font: 16px/1.55 system-ui, sans-serif; }
a { color: var(--link); text-decoration: none; }
a:hover { text-decoration: underline; }
h1 { font-size: 1.7rem; margin: 1.2rem 0 .3rem; }
h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
nav, figcaption, .soft { color: var(--soft); font-size: .9rem; }
code, pre { font: .87em/1.5 ui-monospace, monospace; }
code { background: var(--card); padding: .08em .3em; border-radius: 3px; }
pre { background: var(--card); padding: .8rem 1rem; border-radius: 6px; overflow-x: auto; }
pre code { background: none; padding: 0; font-size: 1em; }
.out { color: var(--soft); }
table { border-collapse: collapse; width: 100%; font-size: .93rem; }
td, th { text-align: left; vertical-align: top; padding: .4rem .7rem .4rem 0; border-top: 1px solid var(--line); }
td:nth-child(-n+3) code, .index td:last-child { white-space: nowrap; }
.index { table-layout: fixed; }
.index th:first-child { width: 19rem; }
.index th:last-child { width: 6.5rem; }
.index code { white-space: normal !important; }
figure { margin: 0; min-width: 0; }
figure img { display: block; max-width: 100%; height: auto; background: var(--card); border-radius: 4px; }
.pictures, .gallery { display: grid; gap: 1rem; grid-template-columns: repeat(auto-fill, minmax(17rem, 1fr));
  margin: 1.2rem 0; align-items: start; }
.gallery figure { background: var(--card); border-radius: 6px; padding: .6rem; }
.gallery .pair { display: grid; grid-template-columns: 1fr 1fr; gap: .4rem; align-items: start; }
"""


def escape(text: str) -> str:
    return html.escape(text, quote=True)


def inline(text: str) -> str:
    """`code`, [links](target) and *emphasis*."""
    parts = re.split(r"(`+)(.+?)\1", text)
    out = []
    for i in range(0, len(parts), 3):
        plain = re.sub(r"\[([^\]]+)\]\(([^)\s]+)\)", r'<a href="\2">\1</a>', escape(parts[i]))
        out.append(re.sub(r"(?<![\w*])\*([^*\s][^*]*)\*(?![\w*])", r"<em>\1</em>", plain))
        if i + 2 < len(parts):
            out.append(f"<code>{escape(parts[i + 2])}</code>")
    return "".join(out)


def block(text: str) -> str:
    """A paragraph, a list, a table or indented code."""
    lines = text.split("\n")
    if all(line.startswith("    ") for line in lines if line.strip()):
        return f"<pre>{escape(chr(10).join(line[4:] for line in lines))}</pre>"
    if re.match(r"[*-] ", lines[0]):
        items = re.split(r"\n(?=[*-] )", text)
        return "<ul>" + "".join(f"<li>{inline(' '.join(i[2:].split()))}</li>" for i in items) + "</ul>"
    if lines[0].startswith("|"):
        cells = [[c.strip() for c in re.split(r"(?<!\\)\|", line.strip())[1:-1]] for line in lines]
        rows = [c for c in cells if not all(re.fullmatch(":?-+:?", x) for x in c)]
        return table(rows[0], [[inline(c.replace(chr(92) + "|", "|")) for c in row] for row in rows[1:]])
    # A list may follow its introduction without an empty line.
    if split := re.search(r"\n(?=[*-] )", text):
        return block(text[: split.start()]) + block(text[split.end() :])
    return f"<p>{inline(' '.join(text.split()))}</p>"


def prose(text: str) -> str:
    return "\n".join(block(b) for b in re.split(r"\n\s*\n", text.strip("\n")) if b.strip())


def table(heads: list[str], rows: list[list[str]], kind: str = "") -> str:
    """Cells are HTML; `kind` is a class of the style."""
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    head = f"<thead><tr>{head}</tr></thead>" if heads else ""
    body = "".join("<tr>" + "".join(f"<td>{c}</td>" for c in row) + "</tr>\n" for row in rows)
    attribute = f' class="{kind}"' if kind else ""
    return f"<table{attribute}>{head}<tbody>\n{body}</tbody></table>"


def figure(picture: str, caption: str, link: str = "") -> str:
    image = f'<img src="{escape(picture)}" alt="{escape(caption.replace(chr(96), ""))}" loading="lazy">'
    image = f'<a href="{escape(link)}">{image}</a>' if link else image
    return f"<figure>{image}<figcaption>{inline(caption)}</figcaption></figure>"


def page(title: str, body: str) -> str:
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<link rel="stylesheet" href="style.css">
</head>
<body>
<nav>penstock · <a href="index.html">operators</a> · <a href="gallery.html">gallery</a></nav>
{body}
</body>
</html>
"""
