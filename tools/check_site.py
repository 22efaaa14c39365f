# SPDX-License-Identifier: Apache-2.0
"""Checks HTML pages in a folder: links lead to files, anchors and pictures that exist; headings go down one level at a
time, pictures have a text, pages a language and a title.

With --external, servers are asked, too: a page that they do not have is an error, a server out of reach is told."""

from __future__ import annotations

import argparse
import os
import re
import sys
import urllib.error
import urllib.request
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """Links and anchors of a page, and what a reader who does not see it would miss."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.headings: list[int] = []
        self.missing = {"a language", "a title"}
        self.feed(path.read_text(encoding="utf-8"))
        self.missing |= {
            f"a level above h{low}" for high, low in zip([0, *self.headings], self.headings) if low > high + 1
        }
        if self.headings.count(1) != 1:
            self.missing.add(f"one h1, there are {self.headings.count(1)}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        self.links |= {given[name] for name in ("href", "src") if name in given}
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag == "img" and "alt" not in given:
            self.missing.add(f"a text for {given.get('src')}")
        if tag == "html" and "lang" in given:
            self.missing.discard("a language")
        if tag == "title":
            self.missing.discard("a title")


def check(folder: Path) -> tuple[list[str], dict[str, str]]:
    """What is broken, and a page for each address outside of the folder."""
    files = {os.path.join(at, name) for at, _, names in os.walk(folder) for name in names}
    pages = {path: Page(Path(path)) for path in sorted(files) if path.endswith(".html")}
    wrong, outside = [], {}
    for path, page in pages.items():
        name = os.path.relpath(path, folder)
        wrong += [f"{name} lacks {what}" for what in sorted(page.missing)]
        for link in sorted(page.links):
            where = urlsplit(link)
            if where.scheme or where.netloc:
                if where.scheme in ("http", "https"):
                    outside[link.partition("#")[0]] = name
                continue
            file = os.path.normpath(os.path.join(os.path.dirname(path), unquote(where.path))) if where.path else path
            anchor = unquote(where.fragment)
            # The theme's own "#" goes to the top of the page.
            if file not in files or anchor and file in pages and anchor not in pages[file].anchors:
                wrong.append(f"{name}: {link}")
    return wrong, outside


def ask(address: str) -> tuple[bool, str]:
    """Whether a server says that there is no such page, and what it says if it does not give the page."""
    request = urllib.request.Request(address, headers={"User-Agent": "penstock-links"})
    try:
        urllib.request.urlopen(request, timeout=20).close()
    except urllib.error.HTTPError as e:
        return e.code in (404, 410), str(e)
    except OSError as e:
        return False, str(e)
    return False, ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--external", action="store_true", help="ask servers, too")
    args = parser.parse_args()
    wrong, outside = check(args.folder)
    for address, page in sorted(outside.items()) if args.external else ():
        gone, said = ask(address)
        if gone:
            wrong.append(f"{page}: {address}: {said}")
        elif said:
            print(f"not checked: {address}: {said}")
    if wrong:
        sys.exit("\n".join(["to be mended:", *wrong]))
    print(f"the pages in {args.folder} are well, their links lead somewhere; {len(outside)} addresses of others")


if __name__ == "__main__":
    main()
